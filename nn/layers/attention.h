// Causal self-attention over queries, keys and values that stand in x (Attention in nn/ops.h).
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

// Keeps x, y and a number for each head and position.
absl::StatusOr<std::unique_ptr<Layer>> NewAttentionLayer(const LayerSpec& spec,
                                                         const LayerContext& context);

}  // namespace thinwire
