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
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// One parameter or buffer in fp32 and PyTorch's layout, in device memory.
struct Parameter {
  ParameterSpec spec;
  Tensor value;
  Tensor gradient;  // same shape; empty for running statistics. Backward adds to it.
  // The value is the memory of the one that it is tied to, which alone is updated (ShareTiedValue).
  bool follows = false;
};

// All parameters of `blocks`, in model order, with cleared gradients. A value is a function of
// (seed, name), where a tied parameter goes by the name of what it copies.
absl::StatusOr<std::vector<Parameter>> InitialParameters(absl::Span<const BlockSpec> blocks,
                                                         uint64_t seed, Device* device);

// Names are unique: parameters are built from the same specs as the layers that ask.
Parameter* FindParameter(absl::Span<Parameter> parameters, const std::string& name);

// The gradient of a tied weight becomes the sum of both, the embedding's first: the head's too,
// which is zero instead where it follows.
absl::Status AddTiedGradients(const Parameter& embedding, const Parameter& head, Ops* ops);

inline float* Floats(const Tensor& tensor) { return static_cast<float*>(tensor.data()); }

}  // namespace thinwire
