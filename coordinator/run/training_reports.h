// Reports of the stages while they train, put together by steps and merged into one account of the
// run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/steady_time.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/boundary_totals.h"
#include "coordinator/run/observer.h"
#include "coordinator/run/tally.h"
#include "coordinator/run/trace_recorder.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Not thread-safe. Of one carrier all is handed on as it came, except for what replicas exchange.
class CarrierReports {
 public:
  explicit CarrierReports(const Pipelines& pipelines) : pipelines_(pipelines) {}

  // Takes what a carrier's last stage reports of a step. Returns the report of the whole step once
  // all have come, or one of them that is of all: its loss is the sum over replicas, in ascending
  // order, over all labels.
  std::optional<StepReport> Add(int carrier, const StepReport& step);

  // Takes what a server tells of single steps. Returns the sums of those of which all have told:
  // one server of each carrier about a cut, every server about what replicas exchange.
  std::vector<TrafficRecord> Add(int server, const std::vector<TrafficRecord>& traffic);
  // Returns the sums of which only some have told, as they can at the end of an epoch: some
  // carriers may have no samples of its last batch, and some stages nothing to exchange.
  std::vector<TrafficRecord> Rest();

 private:
  using Place = std::tuple<uint64_t, std::string, std::string>;  // step, boundary, direction

  Pipelines pipelines_;
  uint64_t last_of_all_ = 0;  // last step that a carrier has reported for all
  std::map<uint64_t, std::map<int, StepReport>> steps_;    // by step, by carrier
  std::map<Place, std::map<int, TrafficRecord>> traffic_;  // by server
};

// Merges the reports of all stages, of a step as of an epoch, and tells the observer of them. It
// lasts as long as the run, whose generations follow each other. Only `Take` and `OnCheckpoint` may
// be called on any thread.
class TrainingReports {
 public:
  // `cuts` are those of BoundaryTotals. `trace` is the trace as it is before the first step;
  // without it nothing is traced. `observer` and `summary` outlive this object.
  TrainingReports(std::vector<std::string> cuts, const Pipelines& pipelines,
                  std::optional<RunTrace> trace, RunObserver* observer, Summary* summary);

  // Goes back, or ahead, to the `progress` that a checkpoint of `step` has; the summary has its
  // epochs and boundaries then. `pipelines` report from now on. `lost_at` is when the stage was
  // lost that this makes good, if any.
  void ContinueFrom(const RunProgress& progress, uint64_t step, const Pipelines& pipelines,
                    std::optional<SteadyTime> lost_at);

  // Checks the steps to trace against the `last_step` of the run. In the first generation they must
  // be still to come; a later one traces those that are repeated, of which there are none if it
  // `goes_on`.
  absl::Status StartTrace(uint64_t last_step, bool goes_on = false);

  // Begins and ends time in which all stages train.
  void BeginPart();
  void EndPart();
  // Takes what a server reports in that time. An observer's error fails the fleet.
  absl::Status Take(int server, const StageEvent& event, Fleet* fleet);
  // Checks that `last_step` was the last to be reported, and that `epoch` has that many samples so
  // far. Tells the totals and puts the compute time into the summary.
  absl::Status CheckPart(uint32_t epoch, uint64_t last_step, uint64_t samples);

  // Keeps an evaluation after the last step.
  void Add(const EvaluationRecord& evaluation);
  // Passes on the trace so far, if steps to trace may have ended since step `before`.
  absl::Status TellTrace(uint64_t before);
  // Warns if the steps to trace never came.
  absl::Status WarnOfNoTrace();
  // Tells of a checkpoint on the disk. An observer's error fails the fleet.
  void OnCheckpoint(const CheckpointManifest& manifest, Fleet* fleet);

  // Ends the epoch.
  void EndEpoch();
  // Returns the record of the part of the epoch that has been trained, at least one step, without
  // the evaluation after it.
  EpochRecord EpochSoFar(uint32_t epoch) const;
  // Stores what ContinueFrom takes.
  void Save(RunProgress* progress) const;
  // Return the last step that was trained, and Tally::evaluated_step.
  uint64_t step() const;
  uint64_t evaluated_step() const;
  // Returns where the stages stand behind it, if they agree on updates.
  StageStanding standing() const;

 private:
  absl::Status TakeTraining(int server, const StageEvent& event, Fleet* fleet)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeStep(int carrier, const StepReport& of_carrier, Fleet* fleet)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeTrace(int server, const TraceReport& report, Fleet* fleet);
  void TellRecovered() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TellTotals(const RunTotals& totals) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<std::string> cuts_;
  Pipelines pipelines_;  // changed between generations, when nobody reports
  RunObserver& observer_;
  Summary& summary_;
  std::optional<TraceRecorder> tracer_;  // not set: nothing is traced
  bool has_traced_ = false;              // True if an earlier generation has.
  SteadyTime part_start_;                // start of the part that is being trained
  // Held while one report is handled, so that the observer hears of one after the other.
  mutable absl::Mutex mutex_;
  Tally tally_ ABSL_GUARDED_BY(mutex_);
  CarrierReports carriers_ ABSL_GUARDED_BY(mutex_);
  double squares_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last step, see StageStanding
  // Set from a loss until the first step behind the checkpoint.
  std::optional<SteadyTime> lost_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
