// The adapters of a run as a folder that peft opens: adapter_model.safetensors and
// adapter_config.json.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns adapter_config.json of a resolved experiment with adapters.
absl::StatusOr<std::string> AdapterConfig(const Experiment& experiment);

// Writes the adapters among the tensors in `model_dir`, the folder of a run's model, to `dir`,
// which appears when it is complete and replaces an older one. Errors name the file.
absl::Status SaveAdapter(const Experiment& experiment, const std::string& model_dir,
                         const std::string& dir);

}  // namespace thinwire
