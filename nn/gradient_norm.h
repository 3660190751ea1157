// The norm of the whole model's gradient, and what it is clipped by. Every part of the model adds
// its squares to those of the parts before it, so that the sum is the same however the model is
// divided.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn/ops.h"
#include "nn/segment.h"

namespace thinwire {

// Adds the sum of squares of each trainable parameter's gradient to *sum, in model order, in fp64.
// A tied copy adds nothing: its gradient is that of the parameter to which it is tied. OutOfRange
// names the parameter with which the sum is no finite number.
absl::Status AddSquares(absl::Span<const Parameter> parameters, Ops* ops, double* sum);

// What a gradient of that sum of squares is multiplied by so that its norm is at most `clip_norm`;
// 1 where it is not longer. As PyTorch's clip_grad_norm_: clip_norm / (norm + 1e-6), at most 1.
double ClipScale(double sum_of_squares, double clip_norm);

}  // namespace thinwire
