// Steepest descent on the Stiefel manifold in the spectral norm: SPEL (Yang & Lai, ICML 2026, arXiv
// 2601.21487). MAPL (Janson et al., arXiv 2606.05484) trains its projections with it. With the
// scaled gradient g, the momentum m and W [k, features] with orthonormal rows:
//   g -= sym(g W^T) W;  m = momentum m + (1 - momentum) g;
//   W = polar(W - rate polar(m)),
// where sym(S) = (S + S^T) / 2 and polar(X) is the nearest matrix with orthonormal rows. The first
// polar applies kSteepQuintic five times to m / |m|, as in nn/muon.h. The second applies
// kNewtonsCubic eight times, which is exact in fp32 for rates up to 0.5. These choices, and the
// momentum of 0.95, are ours.
#pragma once

#include "absl/status/status.h"
#include "nn/newton_schulz.h"
#include "nn/ops.h"
#include "nn/parameters.h"
#include "tensor/tensor.h"

namespace thinwire {

// Not thread-safe.
class StiefelDescent {
 public:
  // `device` and `ops` outlive it.
  StiefelDescent(Device* device, Ops* ops)
      : device_(device), ops_(ops), newton_schulz_(device, ops) {}

  // Updates a parameter and its momentum, and clears the gradient. The momentum has the parameter's
  // shape and starts as zeros. A rate above 0.5 counts as 0.5.
  absl::Status Step(double rate, double gradient_scale, const Parameter& parameter,
                    const Tensor& momentum);

 private:
  // Replaces g by its component in the tangent space at w.
  absl::Status ToTangent(const Matrix& w, const Matrix& g);

  Device* const device_;
  Ops* const ops_;
  NewtonSchulz newton_schulz_;
};

}  // namespace thinwire
