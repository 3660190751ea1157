// Traced steps on their way from the stages to a run's observer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/trace/clock.h"
#include "coordinator/trace/trace.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// A trace of that run of the resolved `experiment`, as it is before its first step.
RunTrace EmptyTrace(const Experiment& experiment, const std::string& run, const TraceSteps& steps);

class TraceRecorder {
 public:
  explicit TraceRecorder(RunTrace empty) : empty_(empty), trace_(std::move(empty)) {
    readings_.resize(trace_.stages.size());
  }

  // Keeps what a stage has reported and reads its clock, for as long as some round trips take;
  // readings that fail are left out. True, once, when with it every stage has ended the last asked
  // step. Any thread, those of different stages at once.
  bool Add(int stage, const TraceReport& report, Fleet* fleet);

  // The stages are new processes that go on after that step. What is not complete is forgotten, and
  // the trace begins with the first step that is asked for and comes again.
  void RestartAfter(uint64_t step);

  const TraceSteps& steps() const { return empty_.steps; }

  // Aligned: of the asked steps those up to `step`, which all stages have ended. A stage whose
  // clock could not be read has no slices.
  RunTrace Upto(uint64_t step) const;

 private:
  void ReadClock(int stage, Fleet* fleet);
  bool IsComplete() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RunTrace empty_;
  mutable absl::Mutex mutex_;
  RunTrace trace_ ABSL_GUARDED_BY(mutex_);  // not aligned
  std::vector<std::vector<ClockReading>> readings_ ABSL_GUARDED_BY(mutex_);
  bool has_told_ ABSL_GUARDED_BY(mutex_) = false;  // that it is complete
};

}  // namespace thinwire
