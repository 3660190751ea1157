// Work of a stage's GPU in the traced steps, as slices of the trace.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/stage.pb.h"
#include "tensor/activity.h"

namespace thinwire {

// Records the device from the first step to trace to the last. Not thread-safe.
class DeviceTrace {
 public:
  // Most activities of a recording, which take 3 MB; the rest is counted as dropped.
  static constexpr size_t kMostSlices = 20'000;

  // `on_note` is called with a line when a recording lacks the device's work. A device whose
  // recording does not start is left alone from then on.
  DeviceTrace(std::unique_ptr<ActivityRecorder> recorder, TraceSteps steps,
              std::function<void(const std::string&)> on_note)
      : recorder_(std::move(recorder)), steps_(std::move(steps)), on_note_(std::move(on_note)) {}

  // Tells that `step` begins now, and what went before it has ended. Records from the first step to
  // trace on. Returns false if a recording goes on that is to be ended.
  bool Begin(uint64_t step);
  bool is_recording() const { return !begun_.empty(); }

  // Ends the recording, if one goes on. Returns reports of a size that a message may have, with the
  // slices of each activity's step.
  std::vector<TraceReport> End();

 private:
  struct Begun {
    uint64_t step;
    int64_t at;  // nanoseconds of the steady clock
  };

  std::vector<TraceReport> ReportsOf(std::vector<DeviceActivity> activities) const;
  uint64_t StepAt(int64_t time) const;

  const std::unique_ptr<ActivityRecorder> recorder_;
  const TraceSteps steps_;
  const std::function<void(const std::string&)> on_note_;
  bool cannot_start_ = false;
  bool has_whole_step_ = false;  // a step has begun and ended within the recording
  std::vector<Begun> begun_;     // steps recorded, ascending; empty: nothing is recorded
};

}  // namespace thinwire
