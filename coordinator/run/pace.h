// How fast a run goes, and when it will be done.
#pragma once

#include "coordinator/run/observer.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

class Pace {
 public:
  void Start(const RunPlan& plan) { plan_ = plan; }
  void Add(const StepRecord& step);
  void Add(const EpochRecord& epoch);

  uint64_t total_steps() const { return plan_.epochs * plan_.steps_per_epoch; }

  // The rate of training, without evaluation; 0 before the first step.
  double SamplesPerSecond() const { return seconds_ > 0 ? samples_ / seconds_ : 0; }

  // Time for the steps and evaluations to come if they take the mean of those that were. 0 before
  // the first step.
  double EtaSeconds() const;

 private:
  RunPlan plan_;
  uint64_t steps_ = 0;      // that were seen: after a loss some come twice
  uint64_t last_step_ = 0;  // number of the newest
  double seconds_ = 0, samples_ = 0;
  uint32_t epochs_ = 0, last_epoch_ = 0;  // likewise
  double evaluation_seconds_ = 0;
};

}  // namespace thinwire
