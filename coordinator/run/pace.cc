#include "coordinator/run/pace.h"

namespace thinwire {

void Pace::Add(const StepRecord& step) {
  ++steps_;
  last_step_ = step.step();
  seconds_ += step.seconds();
  samples_ += step.samples();
}

void Pace::Add(const EpochRecord& epoch) {
  ++epochs_;
  last_epoch_ = epoch.epoch();
  evaluation_seconds_ += epoch.evaluation_seconds();
}

double Pace::EtaSeconds() const {
  if (steps_ == 0 || total_steps() < last_step_) return 0;
  double eta =
      static_cast<double>(total_steps() - last_step_) * seconds_ / static_cast<double>(steps_);
  if (epochs_ > 0 && plan_.epochs > last_epoch_) {
    eta += (plan_.epochs - last_epoch_) * evaluation_seconds_ / epochs_;
  }
  return eta;
}

}  // namespace thinwire
