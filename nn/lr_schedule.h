// The learning rate of each step: a pure function.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace thinwire {

struct LrScheduleSpec {
  enum class Kind {
    kConstant,
    kCosine,  // min_lr + (lr - min_lr) (1 + cos(pi (epoch - 1) / t_max)) / 2, once per epoch
    kStep,    // lr gamma^floor((epoch - 1) / step_size), once per epoch
    kLinear   // from lr down to min_lr over t_max epochs, each step
  };
  Kind kind = Kind::kConstant;
  double lr = 0.1;
  double min_lr = 0;
  int64_t t_max = 0;      // epochs
  int64_t step_size = 0;  // epochs
  double gamma = 0.1;
  int64_t warmup_steps = 0;  // first steps: scaled by step / warmup_steps
};

absl::StatusOr<LrScheduleSpec::Kind> LrScheduleFromName(const std::string& name);

// `epoch` from 1; `step` counts optimizer steps of the run from 1; `steps_per_epoch` > 0.
double LearningRate(const LrScheduleSpec& spec, int64_t epoch, int64_t step,
                    int64_t steps_per_epoch);

}  // namespace thinwire
