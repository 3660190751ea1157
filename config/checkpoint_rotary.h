// Keys of config.json about rotary embeddings in one form, whichever version of transformers wrote
// them.
#pragma once

#include "absl/status/status.h"
#include "models/options.h"
#include "nlohmann/json.hpp"
#include "proto/experiment.pb.h"

namespace thinwire {

// Brings what config.json says of rotary embeddings into the form of transformers 4. `rope_theta`
// is a number, `rope_scaling` is null or a map with `rope_type` linear or llama3 and the keys that
// this type has; with `no_rope_layers`, `no_rope_layer_interval` says the same. InvalidArgument
// names the key, the value met and those wanted.
absl::Status UniteRotaryKeys(nlohmann::ordered_json* config);

// Sets what a `rope_scaling` in that form says; nothing if it is null.
void FillScaling(const nlohmann::ordered_json& scaling, ModelConfig* model);

// Returns the `rope_scaling` of a model in that form.
nlohmann::ordered_json RopeScalingKey(const RopeScaling& scaling);

// Adds the keys about rotary embeddings that only one version of transformers reads, for a config
// that has those of UniteRotaryKeys.
void AddRotaryKeys(const ModelOptions& options, nlohmann::ordered_json* config);

}  // namespace thinwire
