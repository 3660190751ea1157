// Initial values of a segment's parameters, and how layers find theirs.
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

// Returns all parameters of `blocks`, in model order, with zero gradients. Initial values depend
// only on (seed, name); a tied parameter uses the name of the one that it copies.
absl::StatusOr<std::vector<Parameter>> InitialParameters(absl::Span<const BlockSpec> blocks,
                                                         uint64_t seed, Device* device);

// Returns the parameter of that name, which must exist. Names are unique, as parameters and layers
// are built from the same specs.
Parameter* FindParameter(absl::Span<Parameter> parameters, const std::string& name);

// Makes the two copies of a tied weight (models/tied_weight.h) in one segment share memory, so that
// it is updated once. The segment's owner calls it before anything else uses the parameters.
absl::Status ShareTiedValue(const TiedWeight& tied, Segment* segment);

// Sets the gradient of the embedding, and of the head, to the sum of both, the embedding's first. A
// head that follows gets zeros instead.
absl::Status AddTiedGradients(const Parameter& embedding, const Parameter& head, Ops* ops);

inline float* Floats(const Tensor& tensor) { return static_cast<float*>(tensor.data()); }

}  // namespace thinwire
