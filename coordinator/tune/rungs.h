// Plan of the rungs, that is their lengths, seeds and candidates, and experiments shortened to such
// a length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Largest share that a tune may take of the steps of training all candidates and `none` in full
// with every seed.
inline constexpr double kBudgetShare = 0.2;

// One rung.
struct Rung {
  size_t candidates = 0;  // besides `none`
  int seeds = 0;
  uint64_t steps = 0;  // of each run, at most
};

// The rungs and their budget.
struct RungBudget {
  // Steps of all candidates and `none`, in full and with every seed.
  uint64_t exhaustive_steps = 0;
  // kBudgetShare of these.
  uint64_t budget_steps = 0;
  std::vector<Rung> rungs;
};

// Plans the rungs. They halve the number of `candidates` (at least 1) until two are left; there are
// at least two rungs. Each rung is half as long again as the one before it, but no longer than the
// experiment. The number of seeds grows from one to `seeds`. `steps` are the experiment's;
// `spent_steps` are those of the probe, which count in the budget. InvalidArgument if a run would
// have fewer than kLeastRungSteps steps.
inline constexpr uint64_t kLeastRungSteps = 4;
absl::StatusOr<RungBudget> PlanRungs(size_t candidates, int seeds, uint64_t steps,
                                     uint64_t spent_steps);

// Returns the resolved `experiment` shortened to at most `steps` steps, in one process and
// evaluated at its end only. It is resolved again. These fields change:
// - epochs: as few as hold that many steps, each of equally many whole batches, by data.limit, or
//   by data.windows where that sets the epoch's length;
// - lr_schedule: t_max and step_size by the ratio of epochs, rounded, at least 1; warmup_steps by
//   the ratio of steps; cosines and lines fall by step, so that they work within a single epoch;
// - compression: warmup_epochs by the ratio of epochs, warmup_steps by the ratio of steps.
// Nothing is captured, and only the last checkpoint is kept. The rest stays, level schedules by
// epoch included.
absl::StatusOr<Experiment> Shrunk(Experiment experiment, uint64_t steps);

}  // namespace thinwire
