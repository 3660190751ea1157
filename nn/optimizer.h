// Turns accumulated gradients into new parameter values. fp32 throughout. What an optimizer
// remembers is readable by name, as PyTorch's `state` is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/ops.h"
#include "nn/optimizer_spec.h"
#include "nn/parameters.h"

namespace thinwire {

// What an optimizer remembers of one parameter.
struct OptimizerState {
  std::string parameter;  // its name: "fc.weight"
  std::string name;       // PyTorch's: "momentum_buffer", "exp_avg", "exp_avg_sq"
  Tensor tensor;          // of the parameter's shape, fp32; shares the optimizer's memory
};

// The factor of gradients: a number, or one that the device makes of what was submitted before.
struct GradientScale {
  GradientScale(double value = 1) : value(value) {}
  explicit GradientScale(const float* on_device) : on_device(on_device) {}

  double value = 1;
  const float* on_device = nullptr;  // null: `value`; NaN there: nothing is updated
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One update of every trainable parameter with learning rate `lr` and its gradient times
  // `gradient_scale`, which clipping makes less than 1; clears the gradients. With g the scaled
  // gradient and t the number of the step, from 1:
  //   sgd, as PyTorch's:  g += wd p; v = momentum v + g (v = g first);
  //                       p -= lr (nesterov ? g + momentum v : v)
  //   adamw, likewise:    p -= lr wd p; m = beta1 m + (1 - beta1) g; s = beta2 s + (1 - beta2) g^2;
  //                       p -= lr (m / (1 - beta1^t)) / (sqrt(s / (1 - beta2^t)) + epsilon)
  //   muon:               hidden weights as nn/muon.h says, all else as adamw with
  //                       lr adamw_lr / (the schedule's first lr)
  // Whatever the optimizer: orthonormal parameters as nn/stiefel.h says, and in the end those that
  // are kept within a span go back to it (nn/within.h).
  virtual absl::Status Step(double lr, GradientScale gradient_scale = {}) = 0;
  // Whether that scale may be the device's: whether no update needs to know it on the host.
  virtual bool takes_scale_on_device() const = 0;

  // The steps taken, and for a state that was restored: how many had made it.
  virtual int64_t steps() const = 0;
  virtual void set_steps(int64_t steps) = 0;
  // In model order; without parameters that nothing is remembered of.
  virtual std::vector<OptimizerState> state() const = 0;
};

// `parameters` outlive the optimizer. Errors of CheckOptimizer.
absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec,
                                                        absl::Span<Parameter> parameters,
                                                        Device* device, Ops* ops);

}  // namespace thinwire
