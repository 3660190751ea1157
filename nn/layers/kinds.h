// The kinds of layers that build.cc makes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"
#include "nn/layers/batch_norm.h"
#include "nn/layers/layer.h"
#include "nn/layers/layer_norm.h"
#include "nn/layers/sequence.h"
#include "nn/ops.h"
#include "nn/parameters.h"

namespace thinwire {

// Self-attention; x has the queries, keys and values (Attention in nn/ops.h).

// Makes a layer that keeps x, y and one number for each head and position. With `pad` it reads the
// ids of the pass. InvalidArgument if these do not fit x.
absl::StatusOr<std::unique_ptr<Layer>> NewAttentionLayer(const LayerSpec& spec,
                                                         const LayerContext& context);

// Dropout in training (Dropout in nn/ops.h); otherwise the identity.

// Returns the key with which layer `name` draws in one step.
uint64_t DropoutKey(uint64_t seed, const std::string& name, uint64_t step);

// Makes a layer that works in place if nobody else holds its input. It keeps nothing: Backward
// draws the same mask again.
std::unique_ptr<Layer> NewDropoutLayer(const LayerSpec& spec, const LayerContext& context);

// Looks up rows of a table for token ids and for positions (Embedding in nn/ops.h).

// Makes a layer that keeps the ids; Backward returns an empty tensor. The parameters of both layers
// outlive them.
std::unique_ptr<Layer> NewEmbeddingLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                                         const LayerContext& context);

// Makes a layer that adds the row of its position to each row of x, in place if nobody else holds
// x. It keeps nothing.
std::unique_ptr<Layer> NewPositionEmbeddingLayer(const LayerSpec& spec,
                                                 absl::Span<Parameter> parameters,
                                                 const LayerContext& context);

// Makes a layer that adds to each row of x that of its position's type. It keeps nothing. With a
// separator it reads the ids of the pass. InvalidArgument if these do not fit x.
std::unique_ptr<Layer> NewTypeEmbeddingLayer(const LayerSpec& spec,
                                             absl::Span<Parameter> parameters,
                                             const LayerContext& context);

// Makes a layer that puts its row before the positions of x. It keeps nothing.
std::unique_ptr<Layer> NewClassTokenLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                                          const LayerContext& context);

// y = body(x) + shortcut(x) (He et al., CVPR 2016); an empty shortcut is the identity.

// The parts of its body and its shortcut.
struct ResidualParts {
  // Null, or goes before `body` and adds up x and, in the backward pass, the shortcut's gradient in
  // its own passes. Then the shortcut is empty.
  std::unique_ptr<LayerNormLayer> first;
  std::unique_ptr<Sequence> body;
  // Null, or follows `body` and adds the shortcut in its own pass, with the ReLU that it was built
  // with.
  std::unique_ptr<BatchNormLayer> last;
  std::unique_ptr<Sequence> shortcut;
};

// Makes the layer. Without `last` it leaves the addition to the next layer, where that takes sums.
std::unique_ptr<Layer> NewResidualLayer(ResidualParts parts, const LayerContext& context);

// Layers without parameters.

// Makes a layer y = max(x, 0). It keeps y, which is the next layer's x anyway.
std::unique_ptr<Layer> NewReluLayer(const LayerContext& context);
// These keep x.
std::unique_ptr<Layer> NewMaxPoolLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewMaxoutLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewPointwiseLayer(Pointwise function, const LayerSpec& spec,
                                         const LayerContext& context);
std::unique_ptr<Layer> NewSwigluLayer(const LayerSpec& spec, const LayerContext& context);
// These keep nothing.
std::unique_ptr<Layer> NewGlobalAvgPoolLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewResizeLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewFlattenLayer(const LayerSpec& spec, const LayerContext& context);
std::unique_ptr<Layer> NewFirstLayer(const LayerSpec& spec, const LayerContext& context);
// Makes a layer whose result is x's memory, in another shape.
std::unique_ptr<Layer> NewSequenceLayer(const LayerSpec& spec);

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
// Makes a layer for a linear layer, GELU in tanh form and another linear layer. It keeps the x of
// all three.
absl::StatusOr<std::unique_ptr<Layer>> NewGeluPairLayer(const LayerSpec& first,
                                                        const LayerSpec& second, bool needs_dx,
                                                        bool makes_logits,
                                                        absl::Span<Parameter> parameters,
                                                        const LayerContext& context);

}  // namespace thinwire
