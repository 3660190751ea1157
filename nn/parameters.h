// Initial values of a segment's parameters, and how layers find theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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

// A parameter or buffer in PyTorch's layout, in device memory: fp32, or in few bits
// (nn/coded_parameter.h).
struct Parameter {
  ParameterSpec spec;
  Tensor value;     // empty if the parameter is held in few bits
  Tensor gradient;  // same shape, Backward adds to it; empty unless the parameter is trained
  // Gradients of single slices that are here, where the layer works on slices. Backward adds to
  // these; `gradient` is their sum over all slices when a step ends.
  std::vector<Tensor> of_slices = {};
  // True if the value shares the memory of the parameter that it is tied to, which alone is updated
  // (ShareTiedValue).
  bool follows = false;
  // Copy of the value, rounded to bf16, that its layer multiplies with (nn/ops.h: NarrowCopies);
  // null: it has none of this kind.
  uint16_t* narrow = nullptr;
  bool narrow_is_updated = false;  // the optimizer's Step writes `narrow`, too
  // The value in spec.format, if that is not fp32; `scales` is null where the format has none.
  std::shared_ptr<Buffer> codes = {}, scales = {};

  bool is_coded() const { return codes != nullptr; }
};

// Returns all parameters of `blocks`, in model order, with zero gradients. Initial values depend
// only on (seed, name); a tied parameter uses the name of the one that it copies. Without a seed
// they are zeros.
absl::StatusOr<std::vector<Parameter>> InitialParameters(absl::Span<const BlockSpec> blocks,
                                                         std::optional<uint64_t> seed,
                                                         Device* device);

// Returns the parameter of that name, which must exist. Names are unique, as parameters and layers
// are built from the same specs.
Parameter* FindParameter(absl::Span<Parameter> parameters, const std::string& name);

// Sets the gradient of the embedding, and of the head, to the sum of both, the embedding's first. A
// head that follows gets zeros instead.
absl::Status AddTiedGradients(const Parameter& embedding, const Parameter& head, Ops* ops);

inline float* Floats(const Tensor& tensor) { return static_cast<float*>(tensor.data()); }

// Returns the gradient to which a group of rows adds (PositionSlices).
inline float* GradientOf(const Parameter& parameter, int group) {
  return Floats(parameter.of_slices.empty() ? parameter.gradient : parameter.of_slices[group]);
}

}  // namespace thinwire
