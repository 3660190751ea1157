// Dropout in training (Dropout in nn/ops.h); otherwise the identity.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

// The key under which the layer `name` draws in one step.
uint64_t DropoutKey(uint64_t seed, const std::string& name, uint64_t step);

// Works in place where nobody else holds its input. Keeps nothing: Backward draws once more.
std::unique_ptr<Layer> NewDropoutLayer(const LayerSpec& spec, const LayerContext& context);

}  // namespace thinwire
