// Export of a checkpoint's model to a folder of its own, without what only a run needs.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "coordinator/checkpoint/merge.h"
#include "proto/checkpoint.pb.h"

namespace thinwire {

// Returns AlreadyExists unless `out` does not exist or is an empty folder.
absl::Status CheckExportFolder(const std::string& out);

// Copies the checkpoint's files of the part "model", which must have been verified, and the files
// beside them (config.json, a tokenizer) to `out`, and writes their index. Adapters of the layers
// in `mergings` are merged into the weights, or into those of `originals` (merge.h). `out` appears
// when it is complete; until then it is OUT.tmp, which must not exist before. `check` is called
// between pieces; if it returns an error, nothing is left and the error is returned.
absl::Status ExportModel(const std::string& checkpoint, const CheckpointManifest& manifest,
                         const std::string& out, const std::function<absl::Status()>& check,
                         const Mergings& mergings = {}, const Originals* originals = nullptr);

}  // namespace thinwire
