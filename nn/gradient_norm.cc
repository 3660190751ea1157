#include "nn/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nn/parameters.h"

namespace thinwire {

absl::Status AddSquares(absl::Span<const Parameter> parameters, Ops* ops, double* sum) {
  std::vector<const Parameter*> counted;
  std::vector<FloatRange> gradients;
  for (const Parameter& parameter : parameters) {
    if (!parameter.spec.trainable || !parameter.spec.tied_to.empty()) continue;
    counted.push_back(&parameter);
    gradients.push_back({Floats(parameter.gradient), parameter.gradient.elements()});
  }
  std::vector<double> squares(gradients.size());
  RETURN_IF_ERROR(ToStatus(ops->SumsOfSquares(
      gradients.data(), static_cast<int64_t>(gradients.size()), squares.data())));
  for (size_t i = 0; i < squares.size(); ++i) {
    *sum += squares[i];
    if (std::isfinite(*sum)) continue;
    return absl::OutOfRangeError(absl::StrCat("with the gradient of ", counted[i]->spec.name,
                                              " the squares add up to ", *sum));
  }
  return absl::OkStatus();
}

double ClipScale(double sum_of_squares, double clip_norm) {
  return std::min(1.0, clip_norm / (std::sqrt(sum_of_squares) + 1e-6));
}

}  // namespace thinwire
