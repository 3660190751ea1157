// Keys of config.json about windows of attention. Its types of models spell them in several ways,
// and some of them ignore a window.
#pragma once

#include "absl/status/status.h"
#include "models/options.h"
#include "nlohmann/json.hpp"
#include "proto/experiment.pb.h"

namespace thinwire {

// Sets `window` and `window_layers` where they are absent, from a config.json after
// UniteRotaryKeys. InvalidArgument names the key, the value met and those wanted.
absl::Status FillWindow(const nlohmann::ordered_json& config, ModelConfig* model);

// Returns InvalidArgument that names both unless a model with completed options has the windows of
// the config.json.
absl::Status CheckWindow(const nlohmann::ordered_json& config, const ModelOptions& options);

// Adds the keys for windows of a model with completed options, for each version of transformers.
void AddWindowKeys(const ModelOptions& options, nlohmann::ordered_json* config);

}  // namespace thinwire
