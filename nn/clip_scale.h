// The factor that clips a gradient to a norm. A backend makes it as callers do, with the same
// operations in fp64.
#pragma once

#include <algorithm>
#include <cmath>

namespace thinwire {

// Returns the factor for a gradient with that sum of squares, so that its norm is at most
// `clip_norm`; 1 where it is not longer. As PyTorch's clip_grad_norm_: clip_norm / (norm + 1e-6),
// at most 1.
inline double ClipScale(double sum_of_squares, double clip_norm) {
  return std::min(1.0, clip_norm / (std::sqrt(sum_of_squares) + 1e-6));
}

}  // namespace thinwire
