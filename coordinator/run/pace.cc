#include "coordinator/run/pace.h"

namespace thinwire {

void Pace::Add(const StepRecord& step) {
  ++steps_;
  seconds_ += step.seconds();
  samples_ += step.samples();
}

void Pace::Add(const EpochRecord& epoch) {
  ++epochs_;
  evaluation_seconds_ += epoch.evaluation_seconds();
}

double Pace::EtaSeconds() const {
  if (steps_ == 0 || total_steps() < steps_) return 0;
  double eta = static_cast<double>(total_steps() - steps_) * seconds_ / static_cast<double>(steps_);
  if (epochs_ > 0) eta += (plan_.epochs - epochs_) * evaluation_seconds_ / epochs_;
  return eta;
}

}  // namespace thinwire
