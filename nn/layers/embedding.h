// Rows of a table for token ids, and for positions (Embedding in nn/ops.h).
#pragma once

#include <memory>

#include "absl/types/span.h"
#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

// Keeps the ids. Backward returns an empty tensor. Parameters outlive the layer, as below.
std::unique_ptr<Layer> NewEmbeddingLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                                         const LayerContext& context);

// Adds the row of its position to each row of x, in place where nobody else holds x. Keeps nothing.
std::unique_ptr<Layer> NewPositionEmbeddingLayer(const LayerSpec& spec,
                                                 absl::Span<Parameter> parameters,
                                                 const LayerContext& context);

}  // namespace thinwire
