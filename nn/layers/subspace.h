// The layers of subspace bottlenecks (models/bottleneck.h): they project onto the span of a few
// orthonormal rows, expand back out of it, and handle the part of tokens that is outside of it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

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

}  // namespace thinwire
