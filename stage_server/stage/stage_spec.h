// Makes the spec of one stage from a resolved experiment.
#pragma once

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

// Returns the spec of stage `stage`. InvalidArgument if the experiment has no such stage or config/
// refuses it.
absl::StatusOr<StageSpec> StageSpecFrom(const Experiment& experiment, int stage);

}  // namespace thinwire
