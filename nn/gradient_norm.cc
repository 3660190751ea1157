#include "nn/gradient_norm.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nn/parameters.h"

namespace thinwire {

std::vector<const Parameter*> CountedParameters(absl::Span<const Parameter> parameters) {
  std::vector<const Parameter*> counted;
  for (const Parameter& parameter : parameters) {
    if (!parameter.spec.trainable || !parameter.spec.tied_to.empty()) continue;
    counted.push_back(&parameter);
  }
  return counted;
}

absl::Status AddSquaresInOrder(const std::vector<const Parameter*>& counted,
                               absl::Span<const double> squares, double* sum) {
  for (size_t i = 0; i < squares.size(); ++i) {
    *sum += squares[i];
    if (std::isfinite(*sum)) continue;
    return absl::OutOfRangeError(absl::StrCat("with the gradient of ", counted[i]->spec.name,
                                              " the squares add up to ", *sum));
  }
  return absl::OkStatus();
}

absl::Status AddSquares(absl::Span<const Parameter> parameters, Ops* ops, double* sum) {
  const std::vector<const Parameter*> counted = CountedParameters(parameters);
  std::vector<FloatRange> gradients;
  for (const Parameter* parameter : counted) {
    gradients.push_back({Floats(parameter->gradient), parameter->gradient.elements()});
  }
  std::vector<double> squares(gradients.size());
  RETURN_IF_ERROR(ToStatus(ops->SumsOfSquares(
      gradients.data(), static_cast<int64_t>(gradients.size()), squares.data())));
  return AddSquaresInOrder(counted, squares, sum);
}

}  // namespace thinwire
