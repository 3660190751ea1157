// A checkpoint dealt out to stages, which need not be as many, or cut where they were, as those
// that it was taken from.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/fleet/fleet.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// The experiment that wrote it. DataLoss names the checkpoint where that is none.
absl::StatusOr<Experiment> ExperimentOf(const FoundCheckpoint& checkpoint);

// What of a checkpoint goes where.
struct RestorePlan {
  // By stage: the ends of its cuts.
  std::vector<std::vector<CheckpointFile>> ends;
  // A line for each direction of a cut whose memory begins anew although it has one, and for each
  // whose memory nobody wants.
  std::vector<std::string> resets;
};
// `then`: the experiment that wrote the checkpoint, `now`: the one that goes on; both resolved.
// What a cut's direction remembers goes on where it has the same cut and the same compression.
absl::StatusOr<RestorePlan> PlanRestore(const Experiment& then, const Experiment& now,
                                        const CheckpointManifest& manifest);

// Gives every stage of a configured fleet its part. Errors as Fleet::OnAll, and of the files, which
// they name.
absl::Status Restore(const Experiment& now, const FoundCheckpoint& checkpoint,
                     const RestorePlan& plan, Fleet* fleet);

}  // namespace thinwire
