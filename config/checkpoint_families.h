// Keys of config.json of Hugging Face's transformers, and the field of `model` that each one is,
// for each type of model.
#pragma once

#include <vector>

#include "models/options.h"
#include "nlohmann/json.hpp"

namespace thinwire {

// A key of config.json and the matching field of `model`.
struct CheckpointKey {
  const char* key;
  const char* field;  // null: none, as models here have no other value than `absent`
  // Value that transformers assumes if the key is absent; null: it follows from other keys.
  nlohmann::ordered_json absent;
  bool is_written = true;  // False if it belongs to other models, and only has to be `absent`.
};

// Names that transformers has for a type of models and its parts.
struct CheckpointFamily {
  ModelFamily family;
  const char* type;          // also our name of the model of any size
  const char* architecture;  // of BERT with head kMasked
  std::vector<CheckpointKey> keys;
};

const std::vector<CheckpointFamily>& CheckpointFamilies();

// Returns the family of a model; null for one that transformers does not know.
const CheckpointFamily* CheckpointFamilyOf(const ModelOptions& options);

}  // namespace thinwire
