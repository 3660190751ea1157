#include "stage_server/replicas/exchange_counts.h"

#include "wire/frame.h"

namespace thinwire {

void ExchangeCounts::AddEncoding(Phase phase, const Stopwatch::Reading& took,
                                 std::optional<double> level) {
  const std::lock_guard<std::mutex> lock(mutex_);
  BoundaryStatistics& all = CountsOf(phase).all;
  all.encode.Observe(took.seconds);
  all.encode_cpu_seconds += took.cpu_seconds;
  if (level) all.level = level;
}

void ExchangeCounts::AddDecoding(Phase phase, const Stopwatch::Reading& took) {
  const std::lock_guard<std::mutex> lock(mutex_);
  BoundaryStatistics& all = CountsOf(phase).all;
  all.decode.Observe(took.seconds);
  all.decode_cpu_seconds += took.cpu_seconds;
}

void ExchangeCounts::AddMessage(const Message& message, const Counted& counted) {
  const uint64_t payload_bytes = message.payload.bytes.size();
  const auto copies = static_cast<uint64_t>(counted.receivers);
  const auto elements = static_cast<uint64_t>(counted.elements);
  BoundaryStatistics::Traffic sent;
  sent.messages = copies;
  sent.elements = copies * elements;
  sent.raw_bytes = copies * elements * sizeof(float);
  sent.payload_bytes = copies * payload_bytes;
  sent.wire_bytes = copies * WireBytes(message, payload_bytes, run_, generation_);

  const std::lock_guard<std::mutex> lock(mutex_);
  Counts& counts = CountsOf(message.key.phase);
  StepStatistics& step = counts.steps.At(message.key.step);
  counts.all.train += sent;
  step.sent += sent;
  if (counted.level) step.level = counted.level;
  if (!counted.error) return;
  counts.all.errors.Add(*counted.error);
  step.errors.Add(*counted.error);
}

BoundaryStatistics ExchangeCounts::Of(Phase phase) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return IsOfSum(phase) ? average_.all : contributions_.all;
}

std::vector<StepStatistics> ExchangeCounts::TakeSteps(Phase phase, uint64_t last) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return CountsOf(phase).steps.Take(last);
}

}  // namespace thinwire
