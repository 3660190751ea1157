#include "coordinator/run/tally.h"

#include <utility>

namespace thinwire {

StepRecord RecordOf(const StepReport& step) {
  StepRecord record;
  record.set_epoch(step.epoch());
  record.set_step(step.step());
  record.set_loss(step.loss());
  SetAccuracy(step, &record);
  record.set_lr(step.learning_rate());
  record.set_samples(step.samples());
  record.set_seconds(step.seconds());
  return record;
}

Tally::Tally(const std::vector<std::string>& cuts, const Pipelines& pipelines,
             const RunProgress& progress, uint64_t step)
    : servers_(pipelines.servers()),
      step_(step),
      sums_(progress.sums()),
      seconds_(progress.training_seconds()),
      totals_(cuts, pipelines, {progress.boundaries().begin(), progress.boundaries().end()}),
      before_epoch_(progress.before_epoch().begin(), progress.before_epoch().end()),
      replicas_before_(progress.replicas()),
      replicas_before_epoch_(progress.replicas_before_epoch()),
      stash_before_(progress.stash()),
      swap_before_(progress.swap()) {}

void Tally::Add(const StepReport& step) {
  step_ = step.step();
  ++steps_here_;
  samples_here_ += step.samples();
  sums_.set_loss(sums_.loss() + step.loss() * step.samples());
  if (step.has_correct()) sums_.set_correct(sums_.correct() + step.correct());
  sums_.set_samples(sums_.samples() + step.samples());
  sums_.set_labels(sums_.labels() + step.labels());
  sums_.set_lr(step.learning_rate());
}

void Tally::AddSeconds(double seconds) {
  seconds_ += seconds;
  seconds_here_ += seconds;
  sums_.set_seconds(sums_.seconds() + seconds);
}

uint64_t Tally::evaluated_step() const {
  return sums_.evaluations().empty() ? 0 : sums_.evaluations().rbegin()->step();
}

RunTotals Tally::Totals(double seconds) const {
  RunTotals totals;
  totals.boundaries = totals_.Records();
  totals.replicas = Replicas();
  totals.stash = Stash();
  totals.swap = Swap();
  const double available = servers_ * (seconds_here_ + seconds);
  if (available > 0) totals.bubble_ratio = 1 - totals_.BusySeconds() / available;
  return totals;
}

EpochRecord Tally::EpochOf(uint32_t epoch) const {
  EpochRecord record;
  record.set_epoch(epoch);
  record.set_lr(sums_.lr());
  record.mutable_train()->set_loss(sums_.loss() / static_cast<double>(sums_.samples()));
  SetAccuracy(sums_, record.mutable_train());
  record.set_seconds(sums_.seconds());
  record.set_samples_per_second(sums_.samples() / sums_.seconds());
  for (EpochBoundary& boundary : EpochBoundaries(before_epoch_, totals_.Records())) {
    *record.add_boundaries() = std::move(boundary);
  }
  const ReplicasRecord replicas = Replicas();
  EpochReplicas exchanged = EpochOfReplicas(replicas_before_epoch_, replicas);
  if (exchanged.contributions().messages() > 0) *record.mutable_replicas() = std::move(exchanged);
  *record.mutable_evaluations() = sums_.evaluations();
  for (const EvaluationRecord& evaluation : sums_.evaluations()) {
    record.set_evaluation_seconds(record.evaluation_seconds() + evaluation.seconds());
  }
  return record;
}

void Tally::EndEpoch() {
  sums_.Clear();
  before_epoch_ = totals_.Records();
  replicas_before_epoch_ = Replicas();
}

void Tally::Save(RunProgress* progress) const {
  *progress->mutable_sums() = sums_;
  progress->set_training_seconds(seconds_);
  const std::vector<BoundaryRecord> boundaries = totals_.Records();
  *progress->mutable_boundaries() = {boundaries.begin(), boundaries.end()};
  *progress->mutable_before_epoch() = {before_epoch_.begin(), before_epoch_.end()};
  if (Stash().messages() > 0) *progress->mutable_stash() = Stash();
  if (Swap().bytes_out() > 0) *progress->mutable_swap() = Swap();
  if (!Replicas().has_contributions()) return;
  *progress->mutable_replicas() = Replicas();
  *progress->mutable_replicas_before_epoch() = replicas_before_epoch_;
}

}  // namespace thinwire
