// A segment's parameters: their first values, and how layers find theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"
#include "nn/ops.h"
#include "nn/segment.h"
#include "tensor/device.h"

namespace thinwire {

// All parameters of `blocks`, in model order, with cleared gradients. A value is a function of
// (seed, name), where a tied parameter goes by the name of what it copies.
absl::StatusOr<std::vector<Parameter>> InitialParameters(absl::Span<const BlockSpec> blocks,
                                                         uint64_t seed, Device* device);

// Names are unique: parameters are built from the same specs as the layers that ask.
Parameter* FindParameter(absl::Span<Parameter> parameters, const std::string& name);

// Both gradients of a tied weight (models/tied_weight.h) become their sum, the embedding's first.
absl::Status AddTiedGradients(const Parameter& embedding, const Parameter& head, Ops* ops);

inline float* Floats(const Tensor& tensor) { return static_cast<float*>(tensor.data()); }

}  // namespace thinwire
