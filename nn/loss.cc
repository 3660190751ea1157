#include "nn/loss.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {

namespace {

// The tensor as rows of its last axis.
TensorView Rows(const Tensor& tensor) {
  const int64_t row = tensor.shape()[tensor.shape().rank() - 1];
  return Tensor(tensor.buffer(), tensor.dtype(), {tensor.elements() / row, row}).view();
}

}  // namespace

absl::StatusOr<LossSums> SoftmaxCrossEntropy(Tensor logits, int64_t classes,
                                             absl::Span<const int32_t> labels, int64_t batch_rows,
                                             Ops* ops, Tensor* dlogits) {
  const Shape shape = logits.shape();
  const int64_t row = shape.rank() < 2 ? 0 : shape[shape.rank() - 1];
  if (row < classes || shape.elements() != static_cast<int64_t>(labels.size()) * row) {
    return absl::InvalidArgumentError(absl::StrCat("loss: logits are ", shape.ToString(), ", want ",
                                                   labels.size(), " rows of ", classes,
                                                   " classes"));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes) {
      return absl::InvalidArgumentError(absl::StrCat("loss: label ", labels[i], " of row ", i,
                                                     ", want one of ", classes, " classes"));
    }
  }
  CrossEntropy arguments;
  arguments.logits = Rows(logits);
  arguments.classes = classes;
  arguments.labels = labels.data();
  arguments.batch_size = batch_rows;
  if (dlogits != nullptr) {
    if (logits.buffer().use_count() == 1) {
      *dlogits = std::move(logits);
    } else {
      ASSIGN_OR_RETURN(*dlogits, Tensor::Allocate(logits.device(), logits.dtype(), shape));
    }
    arguments.dlogits = Rows(*dlogits);
  }
  LossSums sums;
  RETURN_IF_ERROR(ToStatus(ops->SoftmaxCrossEntropy(arguments, &sums.loss, &sums.correct)));
  return sums;
}

}  // namespace thinwire
