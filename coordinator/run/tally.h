// Account of what a run has done so far: its steps, the sums of the current epoch, the bytes at its
// cuts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/run/boundary_totals.h"
#include "coordinator/run/observer.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Converts a step's report to the form of the run's record.
StepRecord RecordOf(const StepReport& step);

// Stores the share of a report's labels that are correct, 0 without labels; nothing where labels
// are scores.
template <typename Report, typename Record>
void SetAccuracy(const Report& report, Record* record) {
  if (!report.has_correct()) return;
  record->set_accuracy(report.labels() == 0 ? 0 : 1.0 * report.correct() / report.labels());
}

// Not thread-safe.
class Tally {
 public:
  // Starts before the first step, or after `step` with the `progress` of a checkpoint. `cuts` are
  // those of BoundaryTotals.
  Tally(const std::vector<std::string>& cuts, const Pipelines& pipelines)
      : Tally(cuts, pipelines, {}, 0) {}
  Tally(const std::vector<std::string>& cuts, const Pipelines& pipelines,
        const RunProgress& progress, uint64_t step);

  // Add the report of a step, of all carriers, and a server's counts at its ends of the cuts.
  void Add(const StepReport& step);
  void Add(const StageReport& report) { totals_.Update(report); }
  // Adds an evaluation after the last step, within the current epoch.
  void Add(const EvaluationRecord& evaluation) { *sums_.add_evaluations() = evaluation; }
  // Adds time in which all stages trained.
  void AddSeconds(double seconds);

  // Returns the compute time by stage, for the training whose seconds were added.
  std::vector<ComputeRecord> Compute() const { return totals_.Compute(steps_here_, samples_here_); }

  uint64_t step() const { return step_; }                     // the last one, from 1; 0: none
  uint64_t epoch_samples() const { return sums_.samples(); }  // trained in the current epoch
  // Returns the step of the current epoch's last such evaluation; 0: there was none.
  uint64_t evaluated_step() const;
  // Returns what replicas have exchanged; without contributions if there is one replica.
  ReplicasRecord Replicas() const { return totals_.Replicas(replicas_before_); }
  // Returns what stashes encoded; without messages if nothing is stashed.
  DirectionRecord Stash() const { return totals_.Stash(stash_before_); }
  // Returns what waited elsewhere; without bytes if nothing did.
  SwapRecord Swap() const { return totals_.Swap(swap_before_); }
  // Returns the totals. `seconds` are those of training that AddSeconds has not been told of yet.
  RunTotals Totals(double seconds = 0) const;

  // Returns the current epoch without the evaluation after it. At least one step of it must have
  // been trained.
  EpochRecord EpochOf(uint32_t epoch) const;
  // Ends the current epoch.
  void EndEpoch();

  // Stores all that the constructor needs to continue from here.
  void Save(RunProgress* progress) const;

 private:
  int servers_;
  uint64_t step_;
  EpochSums sums_;
  double seconds_;                              // of training, of the whole run
  double seconds_here_ = 0;                     // part of seconds_ with the current stages
  uint64_t steps_here_ = 0, samples_here_ = 0;  // with the current stages
  BoundaryTotals totals_;
  std::vector<BoundaryRecord> before_epoch_;  // totals at the begin of the epoch
  // Record of what replicas exchanged before the current stages began, and up to the begin of the
  // epoch.
  ReplicasRecord replicas_before_, replicas_before_epoch_;
  DirectionRecord stash_before_;  // this and the next: before the current stages began
  SwapRecord swap_before_;
};

}  // namespace thinwire
