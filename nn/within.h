// Keeps parameters in the span of a basis (ParameterSpec::within; Subspace Networks, Ramasinghe et
// al., arXiv 2506.01260). What such layers output lies in that span, so few numbers describe it
// exactly.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn/newton_schulz.h"
#include "nn/parameters.h"
#include "tensor/device.h"

namespace thinwire {

// Replaces every such parameter by its orthogonal projection. For a linear layer's weight
// [features, in] that is W = U^T U W; for tables and biases, whose rows have the features, T = T
// U^T U. The bases are among `parameters`.
absl::Status KeepWithin(absl::Span<Parameter> parameters, NewtonSchulz* products, Device* device);

}  // namespace thinwire
