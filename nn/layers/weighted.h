// Convolutions and linear layers (over the last axis): what has a weight and perhaps a bias.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

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

}  // namespace thinwire
