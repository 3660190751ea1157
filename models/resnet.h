// ResNets for CIFAR. Blocks: stem, layer1.0, layer1.1, ..., head. Parameters have torchvision's
// names: conv1, bn1, layer1.0.conv1, layer2.0.downsample.0, fc.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/options.h"

namespace thinwire {

// Returns the defaults of the known ResNets. resnet18 and resnet34 have widths w, 2w, 4w, 8w.
// resnet8 and resnet20 are those of He et al. (CVPR 2016), section 4.2, with widths w, 2w, 4w.
std::vector<ModelOptions> KnownResNets();

// Returns the blocks: a 3x3 stem of stride 1 without max-pool, basic blocks with projection
// shortcuts (1x1 convolution and batch norm) where shapes change, global average pool, linear
// layer. `options` must have the name of one of KnownResNets(). InvalidArgument for a width out of
// range.
absl::StatusOr<std::vector<BlockSpec>> ResNetBlocks(const ModelOptions& options);

}  // namespace thinwire
