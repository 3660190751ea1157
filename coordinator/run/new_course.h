// Description of what a run does differently after a checkpoint than before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns lines for the user; none if nothing differs. They name the fields with new values. If the
// new schedule has other learning rates for steps up to `step`, they also give the rate of the next
// step. `then` is the experiment of the checkpoint after `step`, `now` the one that continues; both
// are resolved.
absl::StatusOr<std::vector<std::string>> NewCourse(const Experiment& then, const Experiment& now,
                                                   uint64_t step, uint64_t steps_per_epoch);

}  // namespace thinwire
