// Muon: momentum, orthogonalised by Newton-Schulz steps (Jordan et al., 2024:
// kellerjordan.github.io/posts/muon; the arithmetic is that of torch.optim.Muon). With the scaled
// gradient g, the momentum m and a weight p of [out, in]:
//   m = momentum m + g;  u = nesterov ? g + momentum m : m;  u /= |u| + 1e-7, by Frobenius' norm;
//   u = five times kSteepQuintic(u);
//   p -= lr weight_decay p;  p -= lr sqrt(max(1, out / in)) u.
// A convolution's weight is the matrix [out, in kernel kernel]. What files have as several matrices
// (ParameterSpec::parts) is several matrices here. fp32 throughout.
#pragma once

#include "absl/status/status.h"
#include "nn/newton_schulz.h"
#include "nn/ops.h"
#include "nn/parameters.h"
#include "tensor/tensor.h"

namespace thinwire {

struct MuonRates {
  double lr = 0, momentum = 0, weight_decay = 0, gradient_scale = 1;
  bool nesterov = true;
};

// One thread at a time.
class Muon {
 public:
  // Both outlive it.
  Muon(Device* device, Ops* ops) : device_(device), ops_(ops), newton_schulz_(device, ops) {}

  // One update of a parameter, and of its momentum, which has its shape and starts as zeros; clears
  // the gradient.
  absl::Status Step(const MuonRates& rates, const Parameter& parameter, const Tensor& momentum);

 private:
  absl::Status Orthogonalise(const Matrix& matrix);

  Device* const device_;
  Ops* const ops_;
  NewtonSchulz newton_schulz_;
};

}  // namespace thinwire
