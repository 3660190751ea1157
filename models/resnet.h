// ResNets for CIFAR. Blocks: stem, layer1.0, layer1.1, ..., head. Parameters have torchvision's
// names: conv1, bn1, layer1.0.conv1, layer2.0.downsample.0, fc.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/options.h"

namespace thinwire {

// resnet18, resnet34: widths w, 2w, 4w, 8w. resnet8, resnet20: He et al. (CVPR 2016), section 4.2,
// widths w, 2w, 4w.
std::vector<ModelOptions> KnownResNets();

// 3x3 stem of stride 1 without max-pool, basic blocks, projection shortcuts (1x1 convolution and
// batch norm) where shapes change, global average pool, linear. `options` has the name of one of
// KnownResNets(). InvalidArgument for a width out of range.
absl::StatusOr<std::vector<BlockSpec>> ResNetBlocks(const ModelOptions& options);

}  // namespace thinwire
