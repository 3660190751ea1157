// Muon: momentum that is orthogonalised by Newton-Schulz steps (Jordan et al., 2024:
// kellerjordan.github.io/posts/muon; the arithmetic is that of torch.optim.Muon). With the scaled
// gradient g, the momentum m and a weight p of shape [out, in]:
//   m = momentum m + g;  u = nesterov ? g + momentum m : m;  u /= |u| + 1e-7, by Frobenius' norm;
//   u = five times kSteepQuintic(u);
//   p -= lr weight_decay p;  p -= lr sqrt(max(1, out / in)) u.
// A convolution's weight is the matrix [out, in kernel kernel]. A weight that files store as
// several matrices (ParameterSpec::parts) is updated as several matrices. All arithmetic is fp32.
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

// Not thread-safe.
class Muon {
 public:
  // `device` and `ops` outlive it.
  Muon(Device* device, Ops* ops) : device_(device), ops_(ops), newton_schulz_(device, ops) {}

  // Updates a parameter and its momentum, and clears the gradient. The momentum has the parameter's
  // shape and starts as zeros.
  absl::Status Step(const MuonRates& rates, const Parameter& parameter, const Tensor& momentum);

 private:
  Device* const device_;
  Ops* const ops_;
  NewtonSchulz newton_schulz_;
};

}  // namespace thinwire
