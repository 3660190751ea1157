#include "nn/gradient_norm.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nn/parameters.h"

namespace thinwire {

std::vector<const Parameter*> CountedParameters(absl::Span<const Parameter> parameters) {
  std::vector<const Parameter*> counted;
  for (const Parameter& parameter : parameters) {
    if (!IsCounted(parameter.spec)) continue;
    counted.push_back(&parameter);
  }
  return counted;
}

absl::Status AddSquaresInOrder(const std::vector<std::string>& counted,
                               absl::Span<const double> squares, double* sum) {
  for (size_t i = 0; i < squares.size(); ++i) {
    *sum += squares[i];
    if (std::isfinite(*sum)) continue;
    return absl::OutOfRangeError(
        absl::StrCat("with the gradient of ", counted[i], " the squares add up to ", *sum));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> SquaresOf(absl::Span<const Parameter> parameters, Ops* ops) {
  std::vector<FloatRange> gradients;
  for (const Parameter* parameter : CountedParameters(parameters)) {
    gradients.push_back({Floats(parameter->gradient), parameter->gradient.elements()});
  }
  std::vector<double> squares(gradients.size());
  RETURN_IF_ERROR(ToStatus(ops->SumsOfSquares(
      gradients.data(), static_cast<int64_t>(gradients.size()), squares.data())));
  return squares;
}

absl::Status AddSquares(absl::Span<const Parameter> parameters, Ops* ops, double* sum) {
  ASSIGN_OR_RETURN(const std::vector<double> squares, SquaresOf(parameters, ops));
  std::vector<std::string> names;
  for (const Parameter* parameter : CountedParameters(parameters)) {
    names.push_back(parameter->spec.name);
  }
  return AddSquaresInOrder(names, squares, sum);
}

}  // namespace thinwire
