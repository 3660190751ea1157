// Distribution of a checkpoint to stages. Their number and their cuts may differ from those of the
// stages that wrote it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/fleet/fleet.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns the experiment that wrote the checkpoint. DataLoss names the checkpoint if it has none.
absl::StatusOr<Experiment> ExperimentOf(const FoundCheckpoint& checkpoint);

// Returns the base of a checkpoint for the experiment that goes on, which may have the folder
// elsewhere.
CheckpointBase BaseNow(const CheckpointBase& then, const Experiment& now);

// Checks, before stages are there, that the base of a checkpoint is there and fits the model. Its
// digests are compared when it is sent. Errors name the folder.
absl::Status CheckBase(const Experiment& now, const FoundCheckpoint& checkpoint);

// Destination of the parts of a checkpoint.
struct RestorePlan {
  // Parts with tensors of parameters, in the order in which they are restored.
  std::vector<StatePart> tensors;
  // Files of the ends of each stage's cuts, by stage.
  std::vector<std::vector<CheckpointFile>> ends;
  // A line for each direction of a cut whose state starts empty although it has some kind of state,
  // and one for each kind of stored state that nobody needs.
  std::vector<std::string> resets;
};
// Plans the restoration. `then` is the experiment that wrote the checkpoint, `now` the one that
// continues; both are resolved. The state of a direction is kept if the same cut and the same
// compression exist in `now`.
absl::StatusOr<RestorePlan> PlanRestore(const Experiment& then, const Experiment& now,
                                        const CheckpointManifest& manifest);

// Sends every stage of a configured fleet its part. Errors as Fleet::OnAll, and errors of files,
// which they name.
absl::Status Restore(const Experiment& now, const FoundCheckpoint& checkpoint,
                     const RestorePlan& plan, Fleet* fleet);

}  // namespace thinwire
