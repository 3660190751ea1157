// Softmax cross-entropy over one microbatch. A row is a sample or, where there are labels for each
// position of a sequence, a position.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/ops.h"
#include "tensor/tensor.h"

namespace thinwire {

// A loss whose sums the device has yet to make. It stays until a Finish of the device.
class PendingLoss {
 public:
  // In memory of Device::host(): the sums and, behind them, the labels.
  explicit PendingLoss(Tensor memory) : memory_(std::move(memory)) {}
  // After that.
  const LossSums& sums() const { return *static_cast<const LossSums*>(memory_.data()); }

 private:
  Tensor memory_;
};

// logits: [..., classes] or with longer rows, as a segment that ends a model makes them
// (segment.h), fp32 or bf16, with a label for each row. When `dlogits` is not null it becomes
// (softmax(logits) - onehot(label)) / batch_rows in the type of `logits`: the rows of the whole
// batch, so that the microbatches' gradients add up. It takes the memory of `logits` where nobody
// else has a share in that: a language model has logits once. InvalidArgument for a label outside
// the classes. Waits for nothing.
absl::StatusOr<PendingLoss> SubmitSoftmaxCrossEntropy(Tensor logits, int64_t classes,
                                                      absl::Span<const int32_t> labels,
                                                      int64_t batch_rows, Ops* ops,
                                                      Tensor* dlogits);

// The same, and waits for the sums.
absl::StatusOr<LossSums> SoftmaxCrossEntropy(Tensor logits, int64_t classes,
                                             absl::Span<const int32_t> labels, int64_t batch_rows,
                                             Ops* ops, Tensor* dlogits);

}  // namespace thinwire
