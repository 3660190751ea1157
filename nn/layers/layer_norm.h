// Layer norm and RMS norm over the last axis (LayerNormForward in nn/ops.h).
#pragma once

#include <memory>

#include "absl/types/span.h"
#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

// Makes a layer for kLayerNorm or kRmsNorm. It keeps x and each row's statistics for Backward.
// Parameters outlive the layer.
std::unique_ptr<Layer> NewLayerNormLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                                         const LayerContext& context);

}  // namespace thinwire
