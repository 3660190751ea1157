// Kinds of layers that build.cc makes of a backend's objects, which may refuse them.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"
#include "nn/layers/layer.h"
#include "nn/parameters.h"

namespace thinwire {

// Self-attention; x has the queries, keys and values (Attention in nn/ops.h).

// Makes a layer that keeps x, y and one number for each head and position. With `pad` it reads the
// ids of the pass. InvalidArgument if these do not fit x.
absl::StatusOr<std::unique_ptr<Layer>> NewAttentionLayer(const LayerSpec& spec,
                                                         const LayerContext& context);

// The layers of subspace bottlenecks (models/bottleneck.h): they project onto the span of a few
// orthonormal rows, expand back out of it, and handle the part of tokens that is outside of it.

// Makes a layer for kProject or kExpand, which keeps x. The parameters of both layers outlive them.
absl::StatusOr<std::unique_ptr<Layer>> NewBasisLayer(const LayerSpec& spec,
                                                     absl::Span<Parameter> parameters,
                                                     const LayerContext& context);

// Makes a layer for kAnchor: y = x + T[ids], or x - T[ids]. A trained T is a table times a fixed
// factor. A fixed T is a table; if it is subtracted from a code, it is the table times U^T. The
// layer keeps nothing, but reads the ids of the pass. InvalidArgument if these do not fit x.
absl::StatusOr<std::unique_ptr<Layer>> NewAnchorLayer(const LayerSpec& spec,
                                                      absl::Span<Parameter> parameters,
                                                      const LayerContext& context);

// Convolutions and linear layers (over the last axis): what has a weight and perhaps a bias.

// Keep x for Backward. Parameters are found by the spec's name and outlive the layer. Without
// `needs_dx`, Backward returns an empty tensor and saves the work. With `makes_logits` rows of the
// results are Ops::RowOfLogits long.
absl::StatusOr<std::unique_ptr<Layer>> NewConv2dLayer(const LayerSpec& spec, bool needs_dx,
                                                      absl::Span<Parameter> parameters,
                                                      const LayerContext& context);
absl::StatusOr<std::unique_ptr<Layer>> NewLinearLayer(const LayerSpec& spec, bool needs_dx,
                                                      bool makes_logits,
                                                      absl::Span<Parameter> parameters,
                                                      const LayerContext& context);
// Makes a linear layer with adapters (models/lora.h), which keeps x and what it makes of it.
absl::StatusOr<std::unique_ptr<Layer>> NewAdaptedLayer(const LayerSpec& spec, bool needs_dx,
                                                       absl::Span<Parameter> parameters,
                                                       const LayerContext& context);
// Makes a layer for a linear layer, GELU in tanh form and another linear layer. It keeps the x of
// all three.
absl::StatusOr<std::unique_ptr<Layer>> NewGeluPairLayer(const LayerSpec& first,
                                                        const LayerSpec& second, bool needs_dx,
                                                        bool makes_logits,
                                                        absl::Span<Parameter> parameters,
                                                        const LayerContext& context);

}  // namespace thinwire
