// The folder of `init`, from which stages get their first parameters: sent to them, or read by each
// of them (init_at: stages).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Record of the folder that a run's stages have got their parameters from.
struct Initial {
  // The frozen parameters, which checkpoints leave out; not set without `freeze` and `lora`. What
  // is not in the folder stands in each checkpoint.
  std::optional<CheckpointBase> base;
  std::optional<InitialRecord> record;  // set where stages have read it
  std::vector<std::string> fresh;       // what is not in the folder (ModelShares::fresh)
};

// Gives all stages of a configured fleet the parameters of `init`, which the resolved experiment
// has. Errors as ModelShares::Initial and Fleet::OnAll. InvalidArgument names two stages, their
// folders and what differs if they have other models.
absl::StatusOr<Initial> GiveInitial(const Experiment& experiment, Fleet* fleet);

// Makes the stages read the base of a checkpoint. FailedPrecondition names the stage, its folder
// and both digests if a tensor is not the one that the run began with.
absl::Status ReadBaseAtStages(const Experiment& experiment, const CheckpointBase& base,
                              Fleet* fleet);

}  // namespace thinwire
