// Past of a run, as its folder tells it.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/files/record.h"
#include "proto/checkpoint.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// The checkpoint from which a run goes on, with the digests of its data where the manifest or the
// summary has them; none in a run that was killed before its first. Errors of NewestCheckpoint.
absl::StatusOr<std::optional<FoundCheckpoint>> LastCheckpoint(const RunRecord& record);

// Tells whether the run in `dir`, which has `reached` its last checkpoint, has trained all that
// `now` asks for, and has said so: one that was killed between its last step and its summary is
// still to be ended.
bool HasEnded(const CheckpointManifest& reached, const Experiment& now, const std::string& dir);

}  // namespace thinwire
