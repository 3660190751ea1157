// A resolved experiment as the spec of one of its stages.
#pragma once

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

// InvalidArgument for a stage that the experiment does not have, or what config/ refuses.
absl::StatusOr<StageSpec> StageSpecFrom(const Experiment& experiment, int stage);

}  // namespace thinwire
