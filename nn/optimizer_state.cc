#include "nn/optimizer_state.h"

#include "base/status.h"

namespace thinwire {
namespace {

absl::StatusOr<Tensor> WordsOnHost(const OptimizerState& state) {
  return Tensor::Allocate(state.tensor.device()->host(), DType::kF32, state.tensor.shape());
}

CodedMean CodesIn(const Tensor& words, const OptimizerState& state) {
  return CodedMeanIn(static_cast<float*>(words.data()), state.shape.elements());
}

}  // namespace

absl::StatusOr<Tensor> NumbersOf(const OptimizerState& state) {
  Device* const device = state.tensor.device();
  ASSIGN_OR_RETURN(const Tensor words, WordsOnHost(state));
  ASSIGN_OR_RETURN(Tensor numbers, Tensor::Allocate(device->host(), DType::kF32, state.shape));
  RETURN_IF_ERROR(
      ToStatus(device->CopyToHost(words.data(), state.tensor.data(), state.tensor.bytes())));
  ExpandMoments(*state.code, CodesIn(words, state), state.shape.elements(),
                numbers.floats().data());
  return numbers;
}

absl::Status SetNumbers(const OptimizerState& state, const Tensor& numbers) {
  ASSIGN_OR_RETURN(const Tensor words, WordsOnHost(state));
  QuantizeMoments(*state.code, numbers.floats().data(), state.shape.elements(),
                  CodesIn(words, state));
  return ToStatus(
      state.tensor.device()->CopyFromHost(state.tensor.data(), words.data(), words.bytes()));
}

}  // namespace thinwire
