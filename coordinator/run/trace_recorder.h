// Collection of traced steps from the stages for a run's observer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/boundary_totals.h"
#include "coordinator/trace/clock.h"
#include "coordinator/trace/trace.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns a trace of `run` without slices, as it is before the first step of the resolved
// `experiment`.
RunTrace EmptyTrace(const Experiment& experiment, const Pipelines& pipelines,
                    const std::string& run, const TraceSteps& steps);

// Collects the traced steps of a run.
class TraceRecorder {
 public:
  explicit TraceRecorder(RunTrace empty) : empty_(empty), trace_(std::move(empty)) {
    readings_.resize(trace_.stages.size());
  }

  // Keeps a stage's report and reads the stage's clock, which takes some round trips; readings that
  // fail are left out. Returns true once: when every stage has ended the last step to trace and its
  // clock has been read. Any thread; different stages at once.
  bool Add(int stage, const TraceReport& report, Fleet* fleet);

  // Tells that the stages are new processes, which continue after `step`. An incomplete trace is
  // dropped; it begins again with the first step to trace that is repeated.
  void RestartAfter(uint64_t step);

  const TraceSteps& steps() const { return empty_.steps; }

  // Returns the aligned trace of the steps up to `step`, which all stages must have ended. A stage
  // whose clock could not be read has no slices.
  RunTrace Upto(uint64_t step) const;

 private:
  void ReadClock(int stage, Fleet* fleet);
  bool IsComplete() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RunTrace empty_;
  mutable absl::Mutex mutex_;
  RunTrace trace_ ABSL_GUARDED_BY(mutex_);  // not aligned
  std::vector<std::vector<ClockReading>> readings_ ABSL_GUARDED_BY(mutex_);
  bool has_told_ ABSL_GUARDED_BY(mutex_) = false;  // Add has returned true
};

}  // namespace thinwire
