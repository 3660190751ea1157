// Layers without parameters.
#pragma once

#include <memory>

#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

// Makes a layer y = max(x, 0). It keeps y, which is the next layer's x anyway.
std::unique_ptr<Layer> NewReluLayer(const LayerContext& context);
// These keep x.
std::unique_ptr<Layer> NewMaxPoolLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewMaxoutLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewGeluLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewSwigluLayer(const LayerSpec& spec, const LayerContext& context);
// These keep nothing.
std::unique_ptr<Layer> NewGlobalAvgPoolLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewResizeLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewFlattenLayer(const LayerSpec& spec, const LayerContext& context);

}  // namespace thinwire
