// What a run does otherwise from a checkpoint on than it did before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Lines for the user, none where nothing differs: which fields have other values now, and, if steps
// up to `step` were trained at other rates than the new schedule has for them, which rate the next
// step has. `then` is the experiment of the checkpoint after `step`, `now` the one that goes on;
// both are resolved.
absl::StatusOr<std::vector<std::string>> NewCourse(const Experiment& then, const Experiment& now,
                                                   uint64_t step, uint64_t steps_per_epoch);

}  // namespace thinwire
