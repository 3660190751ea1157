// The factor that clips a gradient to a norm. Backends and callers compute it with the same
// operations in fp64.
#pragma once

#include <algorithm>
#include <cmath>

namespace thinwire {

// Returns the factor that reduces a gradient with this sum of squares to the norm `clip_norm`; 1 if
// it is not longer. As in PyTorch's clip_grad_norm_, it is clip_norm / (norm + 1e-6), at most 1.
inline double ClipScale(double sum_of_squares, double clip_norm) {
  return std::min(1.0, clip_norm / (std::sqrt(sum_of_squares) + 1e-6));
}

}  // namespace thinwire
