#include "nn/gradient_norm.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nn/parameters.h"

namespace thinwire {

absl::Status AddSquares(absl::Span<const Parameter> parameters, Ops* ops, double* sum) {
  for (const Parameter& parameter : parameters) {
    if (!parameter.spec.trainable || !parameter.spec.tied_to.empty()) continue;
    double squares = 0;
    RETURN_IF_ERROR(ToStatus(
        ops->SumOfSquares(Floats(parameter.gradient), parameter.gradient.elements(), &squares)));
    *sum += squares;
    if (std::isfinite(*sum)) continue;
    return absl::OutOfRangeError(absl::StrCat("with the gradient of ", parameter.spec.name,
                                              " the squares add up to ", *sum));
  }
  return absl::OkStatus();
}

double ClipScale(double sum_of_squares, double clip_norm) {
  return std::min(1.0, clip_norm / (std::sqrt(sum_of_squares) + 1e-6));
}

}  // namespace thinwire
