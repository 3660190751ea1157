// The norm of the whole model's gradient, from which ClipScale follows. Every part of the model
// adds its squares to those of the parts before it, so that the sum is the same however the model
// is divided.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn/clip_scale.h"
#include "nn/ops.h"
#include "nn/parameters.h"

namespace thinwire {

// Adds the sum of squares of each trainable parameter's gradient to *sum, in model order, in fp64.
// A tied copy adds nothing: its gradient is that of the parameter to which it is tied. OutOfRange
// names the parameter with which the sum is no finite number.
absl::Status AddSquares(absl::Span<const Parameter> parameters, Ops* ops, double* sum);

// Returns the parameters whose squares count there, in that order.
std::vector<const Parameter*> CountedParameters(absl::Span<const Parameter> parameters);

// Adds as AddSquares does: `squares` are those of each of `counted`.
absl::Status AddSquaresInOrder(const std::vector<const Parameter*>& counted,
                               absl::Span<const double> squares, double* sum);

}  // namespace thinwire
