// What an optimizer remembers of a parameter: fp32 numbers, or codes of them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/moment_codes.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace thinwire {

struct OptimizerState {
  std::string parameter;  // the parameter's name: "fc.weight"
  std::string name;       // PyTorch's name: "momentum_buffer", "exp_avg", "exp_avg_sq"
  // fp32, of the parameter's shape; or words with codes and scales (MomentWords). It shares the
  // optimizer's memory, so copying it copies the state.
  Tensor tensor;
  const MomentCode* code = nullptr;  // of the words; null: these are the numbers
  Shape shape = {};                  // of the parameter
};

// Returns what the codes of a state stand for, as a tensor of the parameter's shape in host memory.
absl::StatusOr<Tensor> NumbersOf(const OptimizerState& state);

// Overwrites the codes of a state by those of such numbers.
absl::Status SetNumbers(const OptimizerState& state, const Tensor& numbers);

}  // namespace thinwire
