// The learning rate of each step, as a pure function.
#pragma once

#include <cstdint>

#include "base/enum_names.h"
#include "base/parameters.h"

namespace thinwire {

// Moments at which a rate changes. With kStep, p below counts past steps divided by the steps of an
// epoch, instead of whole past epochs.
enum class LrChange : uint8_t { kEpoch, kStep };

struct LrScheduleSpec {
  enum class Kind {
    kConstant,
    kCosine,  // min_lr + (lr - min_lr) (1 + cos(pi p / t_max)) / 2, p = epoch - 1
    kStep,    // lr gamma^floor((epoch - 1) / step_size), once per epoch
    kLinear   // from lr down to min_lr over t_max epochs: lr + (min_lr - lr) min(p / t_max, 1)
  };
  Kind kind = Kind::kConstant;
  double lr = 0.1;
  double min_lr = 0;
  LrChange by = LrChange::kEpoch;  // kCosine, kLinear
  int64_t t_max = 0;               // epochs
  int64_t last_step = 0;           // by kStep: where the rate is lowest; 0: t_max says so
  int64_t step_size = 0;           // epochs
  double gamma = 0.1;
  int64_t warmup_steps = 0;  // the rate of these first steps is scaled by step / warmup_steps
};

// Calls visit(name, field, presence) for each parameter of the kind (base/parameters.h), except lr
// and warmup_steps, which all kinds have, and last_step, which no file has.
template <typename Spec, typename Visit, ForSpec<Spec, LrScheduleSpec> = 0>
void VisitParameters(Spec& spec, Visit&& visit) {
  switch (spec.kind) {
    case LrScheduleSpec::Kind::kConstant:
      break;
    case LrScheduleSpec::Kind::kCosine:
    case LrScheduleSpec::Kind::kLinear:
      visit("t_max", spec.t_max, Presence::kOptional);
      visit("min_lr", spec.min_lr, Presence::kWritten);
      visit("by", spec.by, Presence::kWritten);
      break;
    case LrScheduleSpec::Kind::kStep:
      visit("step_size", spec.step_size, Presence::kRequired);
      visit("gamma", spec.gamma, Presence::kWritten);
      break;
  }
}

// Returns a schedule of that kind with the defaults of what an experiment leaves out. Cosine
// schedules change every epoch, linear ones every step.
LrScheduleSpec DefaultLrSchedule(LrScheduleSpec::Kind kind);

// Return the names in experiment files (base/enum_names.h).
NameTable<LrScheduleSpec::Kind> TableOf(LrScheduleSpec::Kind);
NameTable<LrChange> TableOf(LrChange);

// Returns the rate of a step. `epoch` and `step`, which counts the run's optimizer steps, begin at
// 1; `steps_per_epoch` > 0.
double LearningRate(const LrScheduleSpec& spec, int64_t epoch, int64_t step,
                    int64_t steps_per_epoch);

}  // namespace thinwire
