// y = body(x) + shortcut(x) (He et al., CVPR 2016); an empty shortcut is the identity.
#pragma once

#include <memory>

#include "nn/layers/batch_norm.h"
#include "nn/layers/layer.h"
#include "nn/layers/sequence.h"

namespace thinwire {

// `last`, when not null, stands behind `body` and does the addition (and the ReLU that it was built
// with) in its own pass.
std::unique_ptr<Layer> NewResidualLayer(std::unique_ptr<Sequence> body,
                                        std::unique_ptr<BatchNormLayer> last,
                                        std::unique_ptr<Sequence> shortcut,
                                        const LayerContext& context);

}  // namespace thinwire
