// Layers without parameters.
#pragma once

#include <memory>

#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

// y = max(x, 0). Keeps y: it is the next layer's x anyway.
std::unique_ptr<Layer> NewReluLayer(const LayerContext& context);
// Keep x.
std::unique_ptr<Layer> NewMaxPoolLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewMaxoutLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewGeluLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewSwigluLayer(const LayerSpec& spec, const LayerContext& context);
// Keep nothing.
std::unique_ptr<Layer> NewGlobalAvgPoolLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewResizeLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewFlattenLayer(const LayerSpec& spec, const LayerContext& context);

}  // namespace thinwire
