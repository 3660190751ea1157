// How long, with how many seeds and with how many candidates each rung trains, and an experiment
// made that short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Of training every candidate and `none` in full with every seed a tune takes at most this share.
inline constexpr double kBudgetShare = 0.2;

struct Rung {
  size_t candidates = 0;  // besides `none`
  int seeds = 0;
  uint64_t steps = 0;  // of each run, at most
};

struct RungBudget {
  uint64_t exhaustive_steps = 0;
  uint64_t budget_steps = 0;
  std::vector<Rung> rungs;
};

// Halves `candidates` >= 1 until two are left, in at least two rungs; each is half as long again as
// the one before, though not longer than the experiment, and seeds grow from one to `seeds`.
// `steps` are the experiment's, `spent_steps` those of the probe, which are in the budget.
// InvalidArgument where a run would be of fewer than kLeastRungSteps.
inline constexpr uint64_t kLeastRungSteps = 4;
absl::StatusOr<RungBudget> PlanRungs(size_t candidates, int seeds, uint64_t steps,
                                     uint64_t spent_steps);

// Optimizer steps of a resolved experiment.
absl::StatusOr<uint64_t> StepsOf(const Experiment& experiment);

// The resolved `experiment` in at most `steps` steps, in one process, evaluated at its end:
//  epochs        as few whole ones as hold that many steps, each of equally many whole batches, by
//                data.limit, or data.windows where that makes the epoch;
//  lr_schedule   t_max and step_size by the ratio of epochs, rounded, at least 1, warmup_steps by
//                that of steps; cosines and lines fall by step, so that a single epoch has one;
//  compression   warmup_epochs by the ratio of epochs, warmup_steps by that of steps.
// The rest stays, levels by epoch among it. Resolved.
absl::StatusOr<Experiment> Shrunk(Experiment experiment, uint64_t steps);

}  // namespace thinwire
