// What a run has done so far: its steps, the sums of the epoch under way, the bytes at its cuts.
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

// The step as the run's record has it.
StepRecord RecordOf(const StepReport& step);

// A sample has a label, or one for each position.
template <typename Report>
uint64_t Labels(const Report& report) {
  return report.samples() * (report.positions() > 0 ? report.positions() : 1);
}

// Not thread-safe.
class Tally {
 public:
  // Before the first step, or after `step` as a checkpoint tells of it. `cuts`: as in
  // BoundaryTotals.
  Tally(const std::vector<std::string>& cuts, int stages) : Tally(cuts, stages, {}, 0) {}
  Tally(const std::vector<std::string>& cuts, int stages, const RunProgress& progress,
        uint64_t step);

  // What the last stage says of a step; what a stage counts at its ends of the cuts.
  void Add(const StepReport& step);
  void Add(const StageReport& report) { totals_.Update(report); }
  // Time in which all stages trained.
  void AddSeconds(double seconds);

  // By stage, of the training that AddSeconds has been told of.
  std::vector<ComputeRecord> Compute() const { return totals_.Compute(steps_here_, samples_here_); }

  uint64_t step() const { return step_; }                     // the last one, from 1; 0: none
  uint64_t epoch_samples() const { return sums_.samples(); }  // trained in the epoch under way
  // `seconds`: of training that AddSeconds has not been told of yet.
  RunTotals Totals(double seconds = 0) const;

  // The epoch under way, without its evaluation. At least one step of it has been trained.
  EpochRecord EpochOf(uint32_t epoch) const;
  // The next one begins.
  void EndEpoch();

  // Fills in all that this object is made from.
  void Save(RunProgress* progress) const;

 private:
  int stages_;
  uint64_t step_;
  EpochSums sums_;
  double seconds_;                              // of training, of the whole run
  double seconds_here_ = 0;                     // of that, with these stages
  uint64_t steps_here_ = 0, samples_here_ = 0;  // likewise
  BoundaryTotals totals_;
  std::vector<BoundaryRecord> before_epoch_;  // totals when it began
};

}  // namespace thinwire
