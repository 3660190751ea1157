// Builds the layers that compute a description, with additions fused into norms, and ReLUs into
// batch norm.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"
#include "nn/layers/layer.h"
#include "nn/layers/sequence.h"
#include "nn/parameters.h"

namespace thinwire {

// Builds the layers of `specs`. With `makes_logits` the last layer, if it is linear, makes rows of
// Ops::RowOfLogits. Without `needs_dx`, a convolution or linear layer in first place leaves out its
// data gradient. `parameters` has the parameters of `specs` and outlives the layers.
absl::StatusOr<std::unique_ptr<Sequence>> BuildLayers(absl::Span<const LayerSpec> specs,
                                                      bool needs_dx,
                                                      absl::Span<Parameter> parameters,
                                                      const LayerContext& context,
                                                      bool makes_logits = false);

}  // namespace thinwire
