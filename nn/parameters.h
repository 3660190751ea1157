// A segment's parameters: their first values, and how layers find theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"
#include "models/tied_weight.h"
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

// Lets both copies of a tied weight (models/tied_weight.h) that one segment holds be one memory, so
// that it is updated once. The segment's owner calls it before anything else is made of it.
absl::Status ShareTiedValue(const TiedWeight& tied, Segment* segment);

// The gradient of a tied weight becomes the sum of both, the embedding's first: the head's too,
// which is zero instead where it follows.
absl::Status AddTiedGradients(const Parameter& embedding, const Parameter& head, Ops* ops);

inline float* Floats(const Tensor& tensor) { return static_cast<float*>(tensor.data()); }

}  // namespace thinwire
