// Causal self-attention; x has the queries, keys and values (Attention in nn/ops.h).
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

// Makes a layer that keeps x, y and one number for each head and position.
absl::StatusOr<std::unique_ptr<Layer>> NewAttentionLayer(const LayerSpec& spec,
                                                         const LayerContext& context);

}  // namespace thinwire
