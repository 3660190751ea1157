#include "coordinator/tune/rungs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/resolve.h"
#include "config/specs.h"

namespace thinwire {
namespace {

constexpr double kGrowth = 1.5;  // ratio of a rung's length to that of the rung before

std::vector<Rung> Halvings(size_t candidates, int seeds) {
  size_t count = 2;  // at least 2: the trend of `none` needs two lengths
  // Candidates / 2^(count - 1), rounded up, are left in the last rung.
  while ((candidates + (size_t{1} << (count - 1)) - 1) >> (count - 1) > 2) ++count;
  std::vector<Rung> rungs(count);
  for (size_t i = 0; i < count; ++i) {
    rungs[i].candidates = candidates;
    rungs[i].seeds = std::max(1, static_cast<int>((i + 1) * static_cast<size_t>(seeds) / count));
    if (candidates > 2) candidates = (candidates + 1) / 2;
  }
  rungs[0].seeds = 1;
  return rungs;
}

uint32_t Scaled(uint32_t value, double by) {
  return static_cast<uint32_t>(std::lround(static_cast<double>(value) * by));
}

}  // namespace

absl::StatusOr<RungBudget> PlanRungs(size_t candidates, int seeds, uint64_t steps,
                                     uint64_t spent_steps) {
  RungBudget budget;
  budget.exhaustive_steps = (candidates + 1) * static_cast<uint64_t>(seeds) * steps;
  budget.budget_steps =
      static_cast<uint64_t>(kBudgetShare * static_cast<double>(budget.exhaustive_steps));
  budget.rungs = Halvings(candidates, seeds);
  double shares = 0, length = 1;
  for (const Rung& rung : budget.rungs) {
    shares += static_cast<double>(rung.candidates + 1) * rung.seeds * length;
    length *= kGrowth;
  }
  const uint64_t left = budget.budget_steps - std::min(budget.budget_steps, spent_steps);
  length = static_cast<double>(left) / shares;
  for (Rung& rung : budget.rungs) {
    rung.steps = std::min(static_cast<uint64_t>(length), steps);
    length *= kGrowth;
  }
  if (budget.rungs.front().steps >= kLeastRungSteps) return budget;
  return absl::InvalidArgumentError(absl::StrCat(
      "the experiment has ", steps, " steps, of which a fifth for each of ", candidates,
      " candidates leaves runs of ", budget.rungs.front().steps, " steps, want at least ",
      kLeastRungSteps, ": more epochs, fewer --batches or fewer --codec"));
}

absl::StatusOr<Experiment> Shrunk(Experiment experiment, uint64_t steps) {
  ASSIGN_OR_RETURN(const uint64_t full, TrainingSteps(experiment));
  ASSIGN_OR_RETURN(const uint64_t an_epoch, StepsPerEpoch(experiment));
  const uint64_t batch = experiment.data().batch_size();
  const auto epochs = static_cast<uint32_t>(
      std::clamp<uint64_t>((steps + an_epoch - 1) / an_epoch, 1, experiment.epochs()));
  const uint64_t batches = std::clamp<uint64_t>(steps / epochs, 1, an_epoch);
  const double by_epoch = static_cast<double>(epochs) / experiment.epochs();
  const double by_step = static_cast<double>(epochs * batches) / static_cast<double>(full);
  if (batches < an_epoch) {
    DataConfig* const data = experiment.mutable_data();
    const auto samples = static_cast<uint32_t>(batches * batch);
    data->windows() > 0 ? data->set_windows(samples) : data->set_limit(samples);
  }
  experiment.set_epochs(epochs);
  experiment.clear_steps();
  experiment.clear_early_stop();
  LrScheduleConfig* const rate = experiment.mutable_lr_schedule();
  if (rate->has_t_max()) {
    rate->set_t_max(std::max(1u, Scaled(rate->t_max(), by_epoch)));
    rate->set_by("step");
  }
  if (rate->has_step_size()) rate->set_step_size(std::max(1u, Scaled(rate->step_size(), by_epoch)));
  rate->set_warmup_steps(Scaled(rate->warmup_steps(), by_step));
  CompressionConfig* const compression = experiment.mutable_compression();
  compression->set_warmup_epochs(Scaled(compression->warmup_epochs(), by_epoch));
  compression->set_warmup_steps(static_cast<uint64_t>(
      std::llround(static_cast<double>(compression->warmup_steps()) * by_step)));
  EvaluationConfig* const evaluation = experiment.mutable_evaluation();
  evaluation->set_every(0);
  evaluation->set_every_steps(0);
  evaluation->set_compressed(true);
  evaluation->set_recalibrated(false);
  evaluation->clear_recalibration_samples();
  experiment.clear_capture();
  experiment.mutable_checkpoint()->set_keep(1);
  experiment.mutable_pipeline()->set_stages(1);
  while (experiment.device_size() > 1) experiment.mutable_device()->RemoveLast();
  RETURN_IF_ERROR(Resolve(&experiment));
  return experiment;
}

}  // namespace thinwire
