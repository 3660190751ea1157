// Turns accumulated gradients into new parameter values. fp32 throughout.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/ops.h"
#include "nn/optimizer_spec.h"
#include "nn/segment.h"

namespace thinwire {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One update of every trainable parameter with learning rate `lr`; clears the gradients.
  // PyTorch's SGD: g += wd p; v = momentum v + g (v = g first); p -= lr (nesterov ? g + momentum v
  // : v).
  virtual absl::Status Step(double lr) = 0;
};

// `parameters` outlive the optimizer.
absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec,
                                                        absl::Span<Parameter> parameters,
                                                        Device* device, Ops* ops);

}  // namespace thinwire
