// Speed of a run and the time until its end.
#pragma once

#include "coordinator/run/observer.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// Estimates from the steps and epochs so far.
class Pace {
 public:
  void Start(const RunPlan& plan) { plan_ = plan; }
  void Add(const StepRecord& step);
  void Add(const EpochRecord& epoch);

  uint64_t total_steps() const { return plan_.steps(); }

  // Returns the rate of training, without evaluation; 0 before the first step.
  double SamplesPerSecond() const { return seconds_ > 0 ? samples_ / seconds_ : 0; }

  // Returns the time for the remaining steps and evaluations, if they take as long as those so far
  // did on average. 0 before the first step.
  double EtaSeconds() const;

 private:
  RunPlan plan_;
  uint64_t steps_ = 0;      // steps seen; after a loss some are seen twice
  uint64_t last_step_ = 0;  // number of the newest
  double seconds_ = 0, samples_ = 0;
  uint32_t epochs_ = 0, last_epoch_ = 0;  // epochs with an evaluation seen, and the newest
  double evaluation_seconds_ = 0;
};

}  // namespace thinwire
