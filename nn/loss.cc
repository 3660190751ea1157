#include "nn/loss.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {

namespace {

absl::Status CheckRowCount(const Shape& logits, int64_t classes, size_t labels) {
  const int64_t row = logits.rank() < 2 ? 0 : logits[logits.rank() - 1];
  if (row >= classes && logits.elements() == static_cast<int64_t>(labels) * row) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("loss: logits are ", logits.ToString(), ", want ",
                                                 labels, " rows of ", classes, " classes"));
}

absl::Status CheckRows(const Shape& logits, int64_t classes, absl::Span<const int32_t> labels) {
  RETURN_IF_ERROR(CheckRowCount(logits, classes, labels.size()));
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= classes) {
      return absl::InvalidArgumentError(absl::StrCat("loss: label ", labels[i], " of row ", i,
                                                     ", want one of ", classes, " classes"));
    }
  }
  return absl::OkStatus();
}

constexpr int64_t kSumsWords = sizeof(LossSums) / sizeof(int32_t);

// Returns memory of a PendingLoss on `device`, with the labels behind the sums.
absl::StatusOr<Tensor> MemoryWith(absl::Span<const int32_t> labels, Device* device) {
  ASSIGN_OR_RETURN(Tensor memory,
                   Tensor::Allocate(device->host(), DType::kI32,
                                    {kSumsWords + static_cast<int64_t>(labels.size())}));
  std::copy(labels.begin(), labels.end(), static_cast<int32_t*>(memory.data()) + kSumsWords);
  return memory;
}

LossSums* SumsIn(const Tensor& memory) { return static_cast<LossSums*>(memory.data()); }
const int32_t* LabelsIn(const Tensor& memory) {
  return static_cast<const int32_t*>(memory.data()) + kSumsWords;
}

// Returns the tensor of a gradient: that of the logits, unless somebody else has it too.
absl::StatusOr<Tensor> GradientOf(Tensor logits) {
  if (logits.buffer().use_count() == 1) return logits;
  return Tensor::Allocate(logits.device(), logits.dtype(), logits.shape());
}

}  // namespace

absl::StatusOr<PendingLoss> SubmitSoftmaxCrossEntropy(Tensor logits, int64_t classes,
                                                      absl::Span<const int32_t> labels,
                                                      int64_t batch_rows, Ops* ops,
                                                      Tensor* dlogits) {
  RETURN_IF_ERROR(CheckRows(logits.shape(), classes, labels));
  ASSIGN_OR_RETURN(const Tensor memory, MemoryWith(labels, logits.device()));
  CrossEntropy arguments;
  arguments.logits = RowsOf(logits);
  arguments.classes = classes;
  arguments.labels = LabelsIn(memory);
  arguments.batch_size = batch_rows;
  if (dlogits != nullptr) {
    ASSIGN_OR_RETURN(*dlogits, GradientOf(std::move(logits)));
    arguments.dlogits = RowsOf(*dlogits);
  }
  RETURN_IF_ERROR(ToStatus(ops->SoftmaxCrossEntropy(arguments, SumsIn(memory))));
  return PendingLoss(memory);
}

absl::StatusOr<PendingLoss> SubmitMeanSquaredError(Tensor outputs, absl::Span<const int32_t> scores,
                                                   double unit, int64_t batch_rows, Ops* ops,
                                                   Tensor* doutputs) {
  RETURN_IF_ERROR(CheckRowCount(outputs.shape(), /*classes=*/1, scores.size()));
  ASSIGN_OR_RETURN(const Tensor memory, MemoryWith(scores, outputs.device()));
  SquaredErrors arguments;
  arguments.outputs = RowsOf(outputs);
  arguments.scores = LabelsIn(memory);
  arguments.unit = unit;
  arguments.batch_size = batch_rows;
  if (doutputs != nullptr) {
    ASSIGN_OR_RETURN(*doutputs, GradientOf(std::move(outputs)));
    arguments.doutputs = RowsOf(*doutputs);
  }
  RETURN_IF_ERROR(ToStatus(ops->MeanSquaredError(arguments, SumsIn(memory))));
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
