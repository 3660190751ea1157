// The models that have a name, and models written in an experiment file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "tensor/shape.h"

namespace thinwire {

// resnet18, resnet34: the CIFAR form, widths w, 2w, 4w, 8w. resnet8, resnet20: He et al. section
// 4.2, widths w, 2w, 4w.
struct KnownModel {
  const char* name;
  int64_t default_width;  // w
};
// In the order in which errors and lists name them.
std::vector<KnownModel> KnownModels();

struct ModelOptions {
  std::string name;   // one of KnownModels()
  int64_t width = 0;  // w; 0: the default of the name
  int64_t classes = 10;
  Shape input;  // the shape of one sample with batch extent 1: [1, 32, 32, 3]
};

// CIFAR ResNets: 3x3 stem of stride 1 without max-pool, basic blocks, projection shortcuts
// (1x1 convolution and batch norm) where shapes change, global average pool, linear. Parameter
// names are torchvision's (conv1, bn1, layer1.0.conv1, layer2.0.downsample.0, fc). Blocks: stem,
// layer1.0, layer1.1, ..., head. InvalidArgument for an unknown name (with the nearest one) or a
// width, class count or input that does not fit.
absl::StatusOr<Model> NamedModel(const ModelOptions& options);

// The name under which experiments write a model of their own.
inline constexpr char kCustomModel[] = "custom";

// A model written by a user: fills every layer's `in` and `out`, and in_features where they are 0,
// and checks that all fits, that names of blocks and of layers with parameters are there once, and
// that the end is [1, classes]. InvalidArgument names the block, the layer and the shapes.
absl::StatusOr<Model> CustomModel(std::string name, std::vector<BlockSpec> blocks, Shape input,
                                  int64_t classes);

}  // namespace thinwire
