// Softmax cross-entropy over one microbatch.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/ops.h"
#include "tensor/tensor.h"

namespace thinwire {

struct LossSums {
  double loss = 0;      // sum over samples, natural logarithm
  int64_t correct = 0;  // argmax equals the label; the lower class wins ties
};

// logits: [n, classes], fp32 or bf16. When `dlogits` is not null it becomes
// (softmax(logits) - onehot(label)) / batch_size in the type of `logits`: the whole batch's size,
// so that the microbatches' gradients add up. InvalidArgument for a label outside the classes.
absl::StatusOr<LossSums> SoftmaxCrossEntropy(const Tensor& logits, absl::Span<const int32_t> labels,
                                             int64_t batch_size, Ops* ops, Tensor* dlogits);

}  // namespace thinwire
