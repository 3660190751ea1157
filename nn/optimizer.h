// Turns accumulated gradients into new parameter values, in fp32. The optimizer's state is readable
// by name, like PyTorch's `state`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/ops.h"
#include "nn/optimizer_spec.h"
#include "nn/optimizer_state.h"
#include "nn/parameters.h"

namespace thinwire {

// The factor of gradients: a number, or one that the device computes in work submitted before.
struct GradientScale {
  GradientScale(double value = 1) : value(value) {}
  explicit GradientScale(const float* on_device) : on_device(on_device) {}

  double value = 1;
  const float* on_device = nullptr;  // null: use `value`; NaN there: update nothing
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates every trainable parameter with learning rate `lr` and its gradient times
  // `gradient_scale`, which clipping makes less than 1. Clears the gradients. With g the scaled
  // gradient and t the number of the step, from 1:
  //   sgd, as PyTorch's:  g += wd p; v = momentum v + g (v = g first);
  //                       p -= lr (nesterov ? g + momentum v : v)
  //   adamw, likewise:    p -= lr wd p; m = beta1 m + (1 - beta1) g; s = beta2 s + (1 - beta2) g^2;
  //                       p -= lr (m / (1 - beta1^t)) / (sqrt(s / (1 - beta2^t)) + epsilon)
  //   muon:               hidden weights as in nn/muon.h, all others as adamw with
  //                       lr adamw_lr / (the schedule's first lr)
  // Means of OptimizerSpec::moments kInt8 are coded behind the update, which takes the numbers.
  // With every optimizer, orthonormal parameters follow nn/stiefel.h instead. At the end,
  // parameters that are kept within a span are projected back to it (nn/within.h). Copies of
  // parameters with narrow_is_updated are written, too; Segment::ParametersUpdated does the rest.
  virtual absl::Status Step(double lr, GradientScale gradient_scale = {}) = 0;
  // Returns whether the scale may be on the device, because no update needs it on the host.
  virtual bool takes_scale_on_device() const = 0;

  // Get and set the number of steps taken; it is set when state is restored.
  virtual int64_t steps() const = 0;
  virtual void set_steps(int64_t steps) = 0;
  // Returns the state in model order, without parameters that have none.
  virtual std::vector<OptimizerState> state() const = 0;
};

// Makes an optimizer, which alone is used for `parameters` from here on; they outlive it. Sets
// their narrow_is_updated. `host_ops` computes on the host of a device that is none, for
// OptimizerPlace::kHost; it is not used otherwise. Returns the errors of CheckOptimizer.
absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec,
                                                        absl::Span<Parameter> parameters,
                                                        Device* device, Ops* ops,
                                                        Ops* host_ops = nullptr);

}  // namespace thinwire
