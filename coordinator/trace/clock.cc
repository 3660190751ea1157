#include "coordinator/trace/clock.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace thinwire {
namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;

void Shift(int64_t by, StageTrace* stage) {
  for (TraceSlice& slice : stage->slices) {
    slice.set_begin(slice.begin() + by);
    slice.set_end(slice.end() + by);
    if (slice.has_ready()) slice.set_ready(slice.ready() + by);
  }
}

}  // namespace

ClockOffset EstimateOffset(absl::Span<const ClockReading> readings) {
  int64_t least = -kFar, most = kFar;
  const ClockReading* shortest = &readings[0];
  for (const ClockReading& reading : readings) {
    least = std::max(least, reading.answered - reading.came);
    most = std::min(most, reading.answered - reading.asked);
    if (reading.came - reading.asked < shortest->came - shortest->asked) shortest = &reading;
  }
  if (least > most) {
    least = shortest->answered - shortest->came;
    most = shortest->answered - shortest->asked;
  }
  return {least + (most - least) / 2, (most - least + 1) / 2};
}

void Align(RunTrace* trace) {
  for (StageTrace& stage : trace->stages) Shift(-stage.clock.offset, &stage);
  std::vector<int64_t> shifts(trace->stages.size(), 0);
  const std::vector<TracedMessage> messages = MessagesOf(*trace);
  for (int stage = 1; stage < static_cast<int>(shifts.size()); ++stage) {
    int64_t least = -kFar, most = kFar;  // bounds of this stage's shift, from earlier stages
    for (const TracedMessage& message : messages) {
      if (!message.crossed()) continue;
      // After the shifts the message must take at least 0:
      // under_way + shifts[to] - shifts[from] >= 0.
      const int64_t under_way = message.decode->ready() - message.send->begin();
      if (message.to == stage && message.from < stage) {
        least = std::max(least, shifts[message.from] - under_way);
      } else if (message.from == stage && message.to < stage) {
        most = std::min(most, shifts[message.to] + under_way);
      }
    }
    shifts[stage] = least <= most ? std::clamp<int64_t>(0, least, most) : (least + most) / 2;
  }
  int64_t first = kFar;
  for (size_t stage = 0; stage < shifts.size(); ++stage) {
    Shift(shifts[stage], &trace->stages[stage]);
    trace->stages[stage].clock.offset -= shifts[stage];
    for (const TraceSlice& slice : trace->stages[stage].slices) {
      first = std::min(first, slice.begin());
    }
  }
  for (StageTrace& stage : trace->stages) Shift(first == kFar ? 0 : -first, &stage);
}

}  // namespace thinwire
