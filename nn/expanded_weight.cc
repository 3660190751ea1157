#include "nn/expanded_weight.h"

#include <algorithm>

#include "base/status.h"

namespace thinwire {
namespace {

bool IsAsIs(WeightFormat format, DType compute) {
  return format == WeightFormat::kBF16 && compute == DType::kBF16;
}

}  // namespace

absl::Status ExpandedWeight::Reserve(absl::Span<const Parameter> parameters) {
  int64_t elements = 0;
  for (const Parameter& parameter : parameters) {
    if (!parameter.is_coded() || IsAsIs(parameter.spec.format, compute_)) continue;
    elements = std::max(elements, parameter.spec.shape.elements());
  }
  if (elements == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(memory_, Tensor::Allocate(device_, compute_, {elements}));
  return absl::OkStatus();
}

absl::StatusOr<const void*> ExpandedWeight::Of(const Parameter& weight) {
  if (IsAsIs(weight.spec.format, compute_)) return weight.codes->data();
  WeightExpansion a;
  a.format = weight.spec.format;
  a.codes = weight.codes->data();
  if (weight.scales != nullptr) a.scales = static_cast<const float*>(weight.scales->data());
  a.weights = ViewOf(memory_.data(), compute_, weight.spec.shape);
  RETURN_IF_ERROR(ToStatus(ops_->ExpandWeights(a)));
  return memory_.data();
}

}  // namespace thinwire
