// The named models, and models written in an experiment file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/options.h"
#include "tensor/shape.h"

namespace thinwire {

// Returns the defaults of all named models, in the order in which errors and lists show them.
std::vector<ModelOptions> KnownModels();

// Returns the defaults of one model. InvalidArgument for an unknown name, with the most similar and
// all known names.
absl::StatusOr<ModelOptions> OptionsOf(const std::string& name);

// Returns a model of a family (models/resnet.h, models/transformer.h) in the given size.
// InvalidArgument for an unknown name, or for options or an input that do not fit.
absl::StatusOr<Model> NamedModel(const ModelOptions& options);

// Model name in experiments that write their own layers.
inline constexpr char kCustomModel[] = "custom";

// Returns a model written by a user, with the shapes and in_features of every layer filled in.
// Checks that all layers fit, that names of blocks and layers are unique, that a tied weight is in
// the last block and copies the model's embedding. Also checks that the output is [1, classes] or,
// for a language model, [1, positions, classes]. InvalidArgument names the block, the layer and the
// shapes.
absl::StatusOr<Model> CustomModel(std::string name, std::vector<BlockSpec> blocks, Shape input,
                                  int64_t classes);

}  // namespace thinwire
