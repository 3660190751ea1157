// The norm of the whole model's gradient, from which ClipScale follows. Every part of the model
// adds its squares to those of the parts before it, so the sum is the same however the model is
// divided.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/clip_scale.h"
#include "nn/ops.h"
#include "nn/parameters.h"

namespace thinwire {

// Adds the sum of squares of each trainable parameter's gradient to *sum, in model order, in fp64.
// A tied copy adds nothing, as its gradient is that of the parameter to which it is tied.
// OutOfRange names the parameter at which the sum stops being finite.
absl::Status AddSquares(absl::Span<const Parameter> parameters, Ops* ops, double* sum);

// Returns these sums of squares, in the order of CountedParameters.
absl::StatusOr<std::vector<double>> SquaresOf(absl::Span<const Parameter> parameters, Ops* ops);

// Returns whether the squares of such a parameter are added.
inline bool IsCounted(const ParameterSpec& spec) {
  return spec.is_trained() && spec.tied_to.empty();
}

// Returns the parameters whose squares AddSquares adds, in that order.
std::vector<const Parameter*> CountedParameters(absl::Span<const Parameter> parameters);

// Adds `squares`, the sums of squares of the gradients of the counted parameters with these names,
// as AddSquares does.
absl::Status AddSquaresInOrder(const std::vector<std::string>& counted,
                               absl::Span<const double> squares, double* sum);

}  // namespace thinwire
