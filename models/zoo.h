// The models that have a name, and models written in an experiment file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/options.h"
#include "tensor/shape.h"

namespace thinwire {

// With the defaults of each, in the order in which errors and lists name them.
std::vector<ModelOptions> KnownModels();

// The defaults of one name. InvalidArgument for an unknown one, with the nearest and all known.
absl::StatusOr<ModelOptions> OptionsOf(const std::string& name);

// A model of a family (models/resnet.h, models/transformer.h) in the given size. InvalidArgument
// for an unknown name or for options or an input that do not fit.
absl::StatusOr<Model> NamedModel(const ModelOptions& options);

// The name under which experiments write a model of their own.
inline constexpr char kCustomModel[] = "custom";

// A model written by a user: fills every layer's `in` and `out`, and in_features where they are 0,
// and checks that all fits, that names of blocks and of layers with names are there once, that a
// tied weight stands in the last block and copies the model's embedding, and that the end is
// [1, classes] or, of a language model, [1, positions, classes]. InvalidArgument names the block,
// the layer and the shapes.
absl::StatusOr<Model> CustomModel(std::string name, std::vector<BlockSpec> blocks, Shape input,
                                  int64_t classes);

}  // namespace thinwire
