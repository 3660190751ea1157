#include "nn/loss.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {

absl::StatusOr<LossSums> SoftmaxCrossEntropy(const Tensor& logits, absl::Span<const int32_t> labels,
                                             int64_t batch_size, Ops* ops, Tensor* dlogits) {
  const Shape& shape = logits.shape();
  if (shape.rank() != 2 || shape[0] != static_cast<int64_t>(labels.size())) {
    return absl::InvalidArgumentError(absl::StrCat("loss: logits are ", shape.ToString(),
                                                   ", want [", labels.size(), ", classes]"));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= shape[1]) {
      return absl::InvalidArgumentError(absl::StrCat("loss: label ", labels[i], " of sample ", i,
                                                     ", want one of ", shape[1], " classes"));
    }
  }
  CrossEntropy arguments;
  arguments.logits = logits.view();
  arguments.labels = labels.data();
  arguments.batch_size = batch_size;
  if (dlogits != nullptr) {
    ASSIGN_OR_RETURN(*dlogits, Tensor::Allocate(logits.device(), logits.dtype(), shape));
    arguments.dlogits = dlogits->view();
  }
  LossSums sums;
  RETURN_IF_ERROR(ToStatus(ops->SoftmaxCrossEntropy(arguments, &sums.loss, &sums.correct)));
  return sums;
}

}  // namespace thinwire
