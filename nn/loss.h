// Losses over one microbatch: softmax cross-entropy, where a row is a sample, or a position of a
// sequence if there is a label for each; and squared errors of scores, one of each sample.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/ops.h"
#include "tensor/tensor.h"

namespace thinwire {

// A loss whose sums the device may not have computed yet. It must live until a Finish of the
// device.
class PendingLoss {
 public:
  // `memory` is of Device::host() and holds the sums, followed by the labels.
  explicit PendingLoss(Tensor memory) : memory_(std::move(memory)) {}
  // Returns the sums; called after that Finish.
  const LossSums& sums() const { return *static_cast<const LossSums*>(memory_.data()); }

 private:
  Tensor memory_;
};

// Submits the loss and returns without waiting. logits: [..., classes], or with longer rows as a
// segment that ends a model makes them (segment.h), fp32 or bf16; there is one label per row. If
// `dlogits` is not null, it becomes (softmax(logits) - onehot(label)) / batch_rows in the type of
// `logits`. batch_rows is the number of rows of the whole batch, so that the gradients of
// microbatches add up. A row with a negative label is ignored: it adds nothing, and has no
// gradient. `dlogits` takes the memory of `logits` if nobody else shares it, so that a
// language model has its logits only once. InvalidArgument for a label beyond the classes.
absl::StatusOr<PendingLoss> SubmitSoftmaxCrossEntropy(Tensor logits, int64_t classes,
                                                      absl::Span<const int32_t> labels,
                                                      int64_t batch_rows, Ops* ops,
                                                      Tensor* dlogits);

// Does the same for outputs, [n, 1] or with longer rows likewise, and scores in `unit`: the loss is
// the sum of (output - score)^2, and `doutputs` becomes 2 (output - score) / batch_rows.
absl::StatusOr<PendingLoss> SubmitMeanSquaredError(Tensor outputs, absl::Span<const int32_t> scores,
                                                   double unit, int64_t batch_rows, Ops* ops,
                                                   Tensor* doutputs);

// Does what SubmitSoftmaxCrossEntropy does, and waits for the sums.
absl::StatusOr<LossSums> SoftmaxCrossEntropy(Tensor logits, int64_t classes,
                                             absl::Span<const int32_t> labels, int64_t batch_rows,
                                             Ops* ops, Tensor* dlogits);

}  // namespace thinwire
