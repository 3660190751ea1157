#include "compress/checks/distortion.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Returns whether x or y has NaN: only then is a sum of squares NaN.
bool HasNan(const CodecKernels::Sums& sums) { return std::isnan(sums.x) || std::isnan(sums.y); }

double RelativeError(const CodecKernels::Sums& sums) {
  if (HasNan(sums)) return std::numeric_limits<double>::quiet_NaN();
  if (sums.x > 0) return std::sqrt(sums.difference / sums.x);
  return sums.y > 0 ? std::numeric_limits<double>::infinity() : 0;
}

double Cosine(const CodecKernels::Sums& sums) {
  if (HasNan(sums)) return std::numeric_limits<double>::quiet_NaN();
  // sqrt(x x) is x: equal tensors have cosine 1 to the last bit.
  if (sums.x > 0 && sums.y > 0) return sums.product / std::sqrt(sums.x * sums.y);
  return sums.x > 0 || sums.y > 0 ? 0 : 1;
}

}  // namespace

absl::StatusOr<Distortion> MeasureDistortion(const Tensor& x, const Tensor& y,
                                             CodecKernels* kernels) {
  if (x.shape() != y.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("distortion: shapes ", x.shape().ToString(),
                                                   " and ", y.shape().ToString(),
                                                   ", want equal ones"));
  }
  CodecKernels::Sums sums;
  RETURN_IF_ERROR(ToStatus(kernels->Compare(x.view(), y.view(), &sums)));
  Distortion distortion;
  distortion.relative_error = RelativeError(sums);
  distortion.cosine = Cosine(sums);
  if (y.elements() > 0) {
    distortion.nonzero_fraction = static_cast<double>(sums.nonzeros_y) / y.elements();
  }
  return distortion;
}

}  // namespace thinwire
