// The models that have a name, and models written in an experiment file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "tensor/shape.h"

namespace thinwire {

struct ModelOptions {
  std::string name;   // resnet18, resnet34 (CIFAR form, widths w, 2w, 4w, 8w; default w = 64),
                      // resnet8, resnet20 (He et al. section 4.2: w, 2w, 4w; default w = 16)
  int64_t width = 0;  // 0: the default of the name
  int64_t classes = 10;
  Shape input;  // of one sample with batch extent 1: [1, 32, 32, 3]
};

// CIFAR ResNets: 3x3 stem of stride 1 without max-pool, basic blocks, projection shortcuts
// (1x1 convolution and batch norm) where shapes change, global average pool, linear. Parameter
// names are torchvision's (conv1, bn1, layer1.0.conv1, layer2.0.downsample.0, fc). Blocks: stem,
// layer1.0, layer1.1, ..., head. InvalidArgument for an unknown name (with the nearest one) or a
// width, class count or input that does not fit.
absl::StatusOr<Model> NamedModel(const ModelOptions& options);

// A model written by a user: fills every layer's `in` and `out`, and in_features where they are 0,
// and checks that all fits, that names of blocks and of layers with parameters are there once, and
// that the end is [1, classes]. InvalidArgument names the block, the layer and the shapes.
absl::StatusOr<Model> CustomModel(std::string name, std::vector<BlockSpec> blocks, Shape input,
                                  int64_t classes);

}  // namespace thinwire
