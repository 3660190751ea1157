// Steepest descent on the Stiefel manifold in the spectral norm: SPEL (Yang & Lai, ICML 2026, arXiv
// 2601.21487), with which MAPL (Janson et al., arXiv 2606.05484) trains its projections. With the
// scaled gradient g, the momentum m and W [k, features] with orthonormal rows:
//   g -= sym(g W^T) W;  m = momentum m + (1 - momentum) g;
//   W = polar(W - rate polar(m)),
// where sym(S) = (S + S^T) / 2 and polar(X) is the nearest matrix with orthonormal rows. The first
// polar is five times kSteepQuintic of m / |m|, as in nn/muon.h, the second eight times
// kNewtonsCubic, which is exact in fp32 from rates up to 0.5; the momentum is 0.95. Those are ours.
#pragma once

#include "absl/status/status.h"
#include "nn/newton_schulz.h"
#include "nn/ops.h"
#include "nn/parameters.h"
#include "tensor/tensor.h"

namespace thinwire {

// One thread at a time.
class StiefelDescent {
 public:
  // Both outlive it.
  StiefelDescent(Device* device, Ops* ops)
      : device_(device), ops_(ops), newton_schulz_(device, ops) {}

  // One update of a parameter, and of its momentum, which has its shape and starts as zeros; clears
  // the gradient. A rate above 0.5 counts as 0.5.
  absl::Status Step(double rate, double gradient_scale, const Parameter& parameter,
                    const Tensor& momentum);

 private:
  // g becomes its part in the tangent space at w.
  absl::Status ToTangent(const Matrix& w, const Matrix& g);

  Device* const device_;
  Ops* const ops_;
  NewtonSchulz newton_schulz_;
};

}  // namespace thinwire
