#include "nn/loss.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {

namespace {

absl::Status CheckRows(const Shape& logits, int64_t classes, absl::Span<const int32_t> labels) {
  const int64_t row = logits.rank() < 2 ? 0 : logits[logits.rank() - 1];
  if (row < classes || logits.elements() != static_cast<int64_t>(labels.size()) * row) {
    return absl::InvalidArgumentError(absl::StrCat("loss: logits are ", logits.ToString(),
                                                   ", want ", labels.size(), " rows of ", classes,
                                                   " classes"));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= classes) {
      return absl::InvalidArgumentError(absl::StrCat("loss: label ", labels[i], " of row ", i,
                                                     ", want one of ", classes, " classes"));
    }
  }
  return absl::OkStatus();
}

constexpr int64_t kSumsWords = sizeof(LossSums) / sizeof(int32_t);

}  // namespace

absl::StatusOr<PendingLoss> SubmitSoftmaxCrossEntropy(Tensor logits, int64_t classes,
                                                      absl::Span<const int32_t> labels,
                                                      int64_t batch_rows, Ops* ops,
                                                      Tensor* dlogits) {
  const Shape shape = logits.shape();
  Device* const device = logits.device();
  RETURN_IF_ERROR(CheckRows(shape, classes, labels));
  ASSIGN_OR_RETURN(const Tensor memory,
                   Tensor::Allocate(device->host(), DType::kI32,
                                    {kSumsWords + static_cast<int64_t>(labels.size())}));
  auto* const kept_labels = static_cast<int32_t*>(memory.data()) + kSumsWords;
  std::copy(labels.begin(), labels.end(), kept_labels);
  CrossEntropy arguments;
  arguments.logits = RowsOf(logits);
  arguments.classes = classes;
  arguments.labels = kept_labels;
  arguments.batch_size = batch_rows;
  if (dlogits != nullptr) {
    if (logits.buffer().use_count() == 1) {
      *dlogits = std::move(logits);
    } else {
      ASSIGN_OR_RETURN(*dlogits, Tensor::Allocate(device, logits.dtype(), shape));
    }
    arguments.dlogits = RowsOf(*dlogits);
  }
  RETURN_IF_ERROR(
      ToStatus(ops->SoftmaxCrossEntropy(arguments, static_cast<LossSums*>(memory.data()))));
  return PendingLoss(memory);
}

absl::StatusOr<LossSums> SoftmaxCrossEntropy(Tensor logits, int64_t classes,
                                             absl::Span<const int32_t> labels, int64_t batch_rows,
                                             Ops* ops, Tensor* dlogits) {
  Device* const device = logits.device();
  ASSIGN_OR_RETURN(
      const PendingLoss loss,
      SubmitSoftmaxCrossEntropy(std::move(logits), classes, labels, batch_rows, ops, dlogits));
  RETURN_IF_ERROR(ToStatus(device->Finish()));
  return loss.sums();
}

}  // namespace thinwire
