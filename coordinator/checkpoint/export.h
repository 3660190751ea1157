// The model of a checkpoint as a folder of its own, without what only a run needs.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "proto/checkpoint.pb.h"

namespace thinwire {

// AlreadyExists unless `out` is nothing, or an empty folder.
absl::Status CheckExportFolder(const std::string& out);

// Copies the checkpoint's files of the part "model", which were verified, and those beside them
// (config.json, a tokenizer) to `out`, and writes their index. `out` appears when it is complete;
// until then it is OUT.tmp, which must not be there. Ends with the error of `check`, which is asked
// between pieces, and leaves nothing then.
absl::Status ExportModel(const std::string& checkpoint, const CheckpointManifest& manifest,
                         const std::string& out, const std::function<absl::Status()>& check);

}  // namespace thinwire
