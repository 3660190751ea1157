// Looks up rows of a table for token ids and for positions (Embedding in nn/ops.h).
#pragma once

#include <memory>

#include "absl/types/span.h"
#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

// Makes a layer that keeps the ids; Backward returns an empty tensor. The parameters of both layers
// outlive them.
std::unique_ptr<Layer> NewEmbeddingLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                                         const LayerContext& context);

// Makes a layer that adds the row of its position to each row of x, in place if nobody else holds
// x. It keeps nothing.
std::unique_ptr<Layer> NewPositionEmbeddingLayer(const LayerSpec& spec,
                                                 absl::Span<Parameter> parameters,
                                                 const LayerContext& context);

}  // namespace thinwire
