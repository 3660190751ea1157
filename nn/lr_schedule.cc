#include "nn/lr_schedule.h"

#include <algorithm>
#include <cmath>

namespace thinwire {
namespace {

constexpr Named<LrScheduleSpec::Kind> kLrScheduleNames[] = {
    {LrScheduleSpec::Kind::kConstant, "constant"},
    {LrScheduleSpec::Kind::kCosine, "cosine"},
    {LrScheduleSpec::Kind::kStep, "step"},
    {LrScheduleSpec::Kind::kLinear, "linear"}};

constexpr Named<LrChange> kLrChangeNames[] = {{LrChange::kEpoch, "epoch"},
                                              {LrChange::kStep, "step"}};

// Progress of a schedule: `past` of `total`, both in epochs or both in steps.
struct Progress {
  double past, total;
};
Progress ProgressOf(const LrScheduleSpec& spec, int64_t epoch, int64_t step,
                    int64_t steps_per_epoch) {
  if (spec.by == LrChange::kEpoch) {
    return {static_cast<double>(epoch - 1), static_cast<double>(spec.t_max)};
  }
  const int64_t total = spec.last_step > 0 ? spec.last_step : spec.t_max * steps_per_epoch;
  return {static_cast<double>(step - 1), static_cast<double>(total)};
}

double Scheduled(const LrScheduleSpec& spec, int64_t epoch, int64_t step, int64_t steps_per_epoch) {
  const auto [past, total] = ProgressOf(spec, epoch, step, steps_per_epoch);
  switch (spec.kind) {
    case LrScheduleSpec::Kind::kConstant:
      return spec.lr;
    case LrScheduleSpec::Kind::kCosine:
      return spec.min_lr + (spec.lr - spec.min_lr) * (1 + std::cos(M_PI * past / total)) / 2;
    case LrScheduleSpec::Kind::kStep:
      return spec.lr * std::pow(spec.gamma, static_cast<double>((epoch - 1) / spec.step_size));
    case LrScheduleSpec::Kind::kLinear:
      return spec.lr + (spec.min_lr - spec.lr) * std::min(past / total, 1.0);
  }
  return spec.lr;
}

}  // namespace

LrScheduleSpec DefaultLrSchedule(LrScheduleSpec::Kind kind) {
  LrScheduleSpec spec;
  spec.kind = kind;
  if (kind == LrScheduleSpec::Kind::kLinear) spec.by = LrChange::kStep;
  return spec;
}

NameTable<LrScheduleSpec::Kind> TableOf(LrScheduleSpec::Kind) {
  return {"lr_schedule", kLrScheduleNames};
}
NameTable<LrChange> TableOf(LrChange) { return {"by", kLrChangeNames}; }

double LearningRate(const LrScheduleSpec& spec, int64_t epoch, int64_t step,
                    int64_t steps_per_epoch) {
  const double lr = Scheduled(spec, epoch, step, steps_per_epoch);
  if (step >= spec.warmup_steps) return lr;
  return lr * static_cast<double>(step) / static_cast<double>(spec.warmup_steps);
}

}  // namespace thinwire
