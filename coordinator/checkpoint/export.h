// Export of a checkpoint's model to a folder of its own, without what only a run needs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/model_folder.h"
#include "coordinator/checkpoint/merge.h"
#include "proto/checkpoint.pb.h"

namespace thinwire {

// Returns AlreadyExists unless `out` does not exist or is an empty folder.
absl::Status CheckExportFolder(const std::string& out);

// A model in a checkpoint of which a base is no part.
struct WholeModel {
  const ModelFolder& folder;                    // with the base
  std::vector<std::vector<std::string>> names;  // tensors by file, as a run's end would have them
};

// Writes the model in a checkpoint to `out`, with an index and the files beside it (config.json, a
// tokenizer). Files of the part "model", which must have been verified, are copied; `whole`, if it
// is not null, is written in their place. Adapters of the layers in `mergings` are merged into the
// weights. `out` appears when it is complete; until then it is OUT.tmp, which must not exist
// before. `check` is called between pieces; if it returns an error, nothing is left and the error
// is returned.
absl::Status ExportModel(const std::string& checkpoint, const CheckpointManifest& manifest,
                         const std::string& out, const std::function<absl::Status()>& check,
                         const Mergings& mergings = {}, const WholeModel* whole = nullptr);

}  // namespace thinwire
