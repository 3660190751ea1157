// The base of a checkpoint: the frozen parameters that its files leave out, as they stand in the
// folder of `init`.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/model_folder.h"
#include "proto/checkpoint.pb.h"

namespace thinwire {

// Value of CheckpointBase.at for a folder on this machine; any other is elsewhere.
inline constexpr char kAtCoordinator[] = "coordinator";

// Adds the tensors of the base, which is on this machine, to those of a checkpoint. Who reads one
// gets FailedPrecondition if it is another than the run began with. Errors name the folder that is
// gone or has no such tensor.
absl::StatusOr<ModelFolder> WithBase(ModelFolder checkpoint, const CheckpointBase& base);

// Opens the folder of a model; of a checkpoint's folder with its base. DataLoss if the base of a
// base, and so on, does not end.
absl::StatusOr<ModelFolder> OpenWeights(const std::string& dir);

// Leaves only the tensors of the base in a folder, under the names that the model's files have for
// them. FailedPrecondition names one that is not there.
absl::Status KeepBase(const CheckpointBase& base, ModelFolder* folder);

// Returns the digest of the config.json in a folder; empty if it has none.
absl::StatusOr<std::string> DigestOfConfig(const std::string& dir);

// Reads the whole base of a checkpoint. Errors as WithBase, and those of what is read.
absl::Status VerifyBase(const CheckpointBase& base);

}  // namespace thinwire
