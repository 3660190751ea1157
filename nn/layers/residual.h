// y = body(x) + shortcut(x) (He et al., CVPR 2016); an empty shortcut is the identity.
#pragma once

#include <memory>

#include "nn/layers/batch_norm.h"
#include "nn/layers/layer.h"
#include "nn/layers/sequence.h"

namespace thinwire {

// Makes the layer. `last`, if not null, follows `body` and adds the shortcut in its own pass, with
// the ReLU that it was built with.
std::unique_ptr<Layer> NewResidualLayer(std::unique_ptr<Sequence> body,
                                        std::unique_ptr<BatchNormLayer> last,
                                        std::unique_ptr<Sequence> shortcut,
                                        const LayerContext& context);

}  // namespace thinwire
