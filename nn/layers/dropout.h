// Dropout in training (Dropout in nn/ops.h); otherwise the identity.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

// Returns the key with which layer `name` draws in one step.
uint64_t DropoutKey(uint64_t seed, const std::string& name, uint64_t step);

// Makes a layer that works in place if nobody else holds its input. It keeps nothing: Backward
// draws the same mask again.
std::unique_ptr<Layer> NewDropoutLayer(const LayerSpec& spec, const LayerContext& context);

}  // namespace thinwire
