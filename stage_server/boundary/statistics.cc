#include "stage_server/boundary/statistics.h"

#include <algorithm>
#include <cmath>

#include "absl/time/clock.h"

namespace thinwire {

void Histogram::Observe(double seconds) {
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts_[bound - kBounds.begin()];
  sum_ += seconds;
}

Histogram& Histogram::operator+=(const Histogram& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  sum_ += other.sum_;
  return *this;
}

BoundaryStatistics::Traffic& BoundaryStatistics::Traffic::operator+=(const Traffic& other) {
  messages += other.messages;
  elements += other.elements;
  raw_bytes += other.raw_bytes;
  payload_bytes += other.payload_bytes;
  wire_bytes += other.wire_bytes;
  return *this;
}

void MeasuredErrors::Add(const MeasuredError& error) {
  const CodecError of_codec = error.codec.value_or(CodecError());
  // A relative error is no number where x is zero or has NaN, and would spoil the sums.
  if (!std::isfinite(error.received.relative_error + of_codec.relative_error +
                     of_codec.relative_residual)) {
    return;
  }
  ++messages;
  relative_error += error.received.relative_error;
  cosine += error.received.cosine;
  nonzero_fraction += error.received.nonzero_fraction;
  if (!error.codec) return;
  ++coded_messages;
  codec.relative_error += of_codec.relative_error;
  codec.relative_residual += of_codec.relative_residual;
  last_codec = of_codec;
}

MeasuredErrors& MeasuredErrors::operator+=(const MeasuredErrors& other) {
  messages += other.messages;
  relative_error += other.relative_error;
  cosine += other.cosine;
  nonzero_fraction += other.nonzero_fraction;
  coded_messages += other.coded_messages;
  codec.relative_error += other.codec.relative_error;
  codec.relative_residual += other.codec.relative_residual;
  if (other.coded_messages > 0) last_codec = other.last_codec;
  return *this;
}

BoundaryStatistics& BoundaryStatistics::operator+=(const BoundaryStatistics& other) {
  train += other.train;
  evaluate += other.evaluate;
  encode += other.encode;
  decode += other.decode;
  encode_cpu_seconds += other.encode_cpu_seconds;
  decode_cpu_seconds += other.decode_cpu_seconds;
  last_receive_unix_seconds = std::max(last_receive_unix_seconds, other.last_receive_unix_seconds);
  errors += other.errors;
  if (other.level) level = other.level;
  return *this;
}

StepStatistics& StepStatistics::operator+=(const StepStatistics& other) {
  sent += other.sent;
  errors += other.errors;
  if (other.level) level = other.level;
  return *this;
}

ActivitySeconds::Layers ActivitySeconds::AllSegments() const {
  Layers all;
  for (const auto& [number, segment] : segments) {
    all.forward += segment.forward;
    all.backward += segment.backward;
    all.optimizer += segment.optimizer;
  }
  return all;
}

std::array<std::pair<const char*, double>, 7> ByName(const ActivitySeconds& seconds) {
  const ActivitySeconds::Layers layers = seconds.AllSegments();
  ActivitySeconds::Waits waits;
  for (const auto& [cut, at_cut] : seconds.waits) {
    waits.send += at_cut.send;
    waits.receive += at_cut.receive;
  }
  return {{{"forward", layers.forward},
           {"backward", layers.backward},
           {"optimizer", layers.optimizer},
           {"core_wait", seconds.core_wait},
           {"data", seconds.data},
           {"send_wait", waits.send},
           {"receive_wait", waits.receive}}};
}

void MessageCounts::AddEncoding(const Stopwatch::Reading& took, std::optional<double> level) {
  const std::lock_guard<std::mutex> lock(mutex_);
  all_.encode.Observe(took.seconds);
  all_.encode_cpu_seconds += took.cpu_seconds;
  if (level) all_.level = level;
}

void MessageCounts::AddDecoding(const Stopwatch::Reading& took) {
  const std::lock_guard<std::mutex> lock(mutex_);
  all_.decode.Observe(took.seconds);
  all_.decode_cpu_seconds += took.cpu_seconds;
}

void MessageCounts::AddReceived() {
  const std::lock_guard<std::mutex> lock(mutex_);
  all_.last_receive_unix_seconds = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
}

void MessageCounts::AddTraining(uint64_t step, const BoundaryStatistics::Traffic& sent,
                                std::optional<double> level,
                                const std::optional<MeasuredError>& error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (steps_.empty() || steps_.back().step != step) steps_.push_back({step, {}, {}, {}});
  StepStatistics& of_step = steps_.back();
  all_.train += sent;
  of_step.sent += sent;
  if (level) of_step.level = level;
  if (!error) return;
  all_.errors.Add(*error);
  of_step.errors.Add(*error);
}

void MessageCounts::AddEvaluation(const BoundaryStatistics::Traffic& sent) {
  const std::lock_guard<std::mutex> lock(mutex_);
  all_.evaluate += sent;
}

BoundaryStatistics MessageCounts::all() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return all_;
}

std::vector<StepStatistics> MessageCounts::TakeSteps(uint64_t last) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<StepStatistics> taken;
  for (; !steps_.empty() && steps_.front().step <= last; steps_.pop_front()) {
    taken.push_back(steps_.front());
  }
  return taken;
}

}  // namespace thinwire
