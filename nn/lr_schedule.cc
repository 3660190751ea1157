#include "nn/lr_schedule.h"

#include <algorithm>
#include <cmath>

#include "base/enum_names.h"

namespace thinwire {
namespace {

constexpr Named<LrScheduleSpec::Kind> kLrScheduleNames[] = {
    {LrScheduleSpec::Kind::kConstant, "constant"},
    {LrScheduleSpec::Kind::kCosine, "cosine"},
    {LrScheduleSpec::Kind::kStep, "step"},
    {LrScheduleSpec::Kind::kLinear, "linear"}};

double Scheduled(const LrScheduleSpec& spec, int64_t epoch, int64_t step, int64_t steps_per_epoch) {
  const double past_epochs = static_cast<double>(epoch - 1);
  switch (spec.kind) {
    case LrScheduleSpec::Kind::kConstant:
      return spec.lr;
    case LrScheduleSpec::Kind::kCosine: {
      const double angle = M_PI * past_epochs / static_cast<double>(spec.t_max);
      return spec.min_lr + (spec.lr - spec.min_lr) * (1 + std::cos(angle)) / 2;
    }
    case LrScheduleSpec::Kind::kStep:
      return spec.lr * std::pow(spec.gamma, static_cast<double>((epoch - 1) / spec.step_size));
    case LrScheduleSpec::Kind::kLinear: {
      const double total = static_cast<double>(spec.t_max * steps_per_epoch);
      const double past = std::min(static_cast<double>(step - 1) / total, 1.0);
      return spec.lr + (spec.min_lr - spec.lr) * past;
    }
  }
  return spec.lr;
}

}  // namespace

const char* Name(LrScheduleSpec::Kind kind) { return NameIn(kLrScheduleNames, kind); }

absl::Status FromName(const std::string& name, LrScheduleSpec::Kind* to) {
  return FindName("lr_schedule", name, kLrScheduleNames, to);
}

std::vector<LrScheduleSpec::Kind> AllLrSchedules() { return ValuesIn(kLrScheduleNames); }

double LearningRate(const LrScheduleSpec& spec, int64_t epoch, int64_t step,
                    int64_t steps_per_epoch) {
  const double lr = Scheduled(spec, epoch, step, steps_per_epoch);
  if (step >= spec.warmup_steps) return lr;
  return lr * static_cast<double>(step) / static_cast<double>(spec.warmup_steps);
}

}  // namespace thinwire
