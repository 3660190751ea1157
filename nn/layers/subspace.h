// Onto the span of a few orthonormal rows, back out of it, and what tokens have outside of it: the
// layers of subspace bottlenecks (models/bottleneck.h).
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

// kProject and kExpand. Keep x. Parameters outlive the layer, as below.
absl::StatusOr<std::unique_ptr<Layer>> NewBasisLayer(const LayerSpec& spec,
                                                     absl::Span<Parameter> parameters,
                                                     const LayerContext& context);

// kAnchor: y = x + T[ids], or x - T[ids]. A trained T is a table times a fixed factor; a fixed one
// that is taken off a code is U^T of the table. Keeps nothing but the pass, whose ids it reads;
// InvalidArgument where these are not those of x.
absl::StatusOr<std::unique_ptr<Layer>> NewAnchorLayer(const LayerSpec& spec,
                                                      absl::Span<Parameter> parameters,
                                                      const LayerContext& context);

}  // namespace thinwire
