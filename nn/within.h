// Parameters that stay in the span of a basis (ParameterSpec::within; Subspace Networks, Ramasinghe
// et al., arXiv 2506.01260): what they write lies in it, so that few numbers say it exactly.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn/newton_schulz.h"
#include "nn/parameters.h"
#include "tensor/device.h"

namespace thinwire {

// Every such parameter becomes its orthogonal projection: W = U^T U W for a linear layer's weight
// [features, in], T = T U^T U for tables and biases, whose rows have the features. Bases are among
// `parameters`.
absl::Status KeepWithin(absl::Span<Parameter> parameters, NewtonSchulz* products, Device* device);

}  // namespace thinwire
