#include "compress/cpu/nonfinite.h"

#include <cmath>

#include "compress/cpu/blocks.h"

namespace thinwire {

Error NonFiniteError(const char* codec, const TensorView& x) {
  float value = 0;
  int64_t i = 0;
  for (; i < x.elements(); ++i) {
    float scratch;
    value = *ReadFloats(x, i, 1, &scratch);
    if (!std::isfinite(value)) break;
  }
  return MakeError(absl::StatusCode::kInvalidArgument, "%s: element %lld is %g, want finite values",
                   codec, static_cast<long long>(i), static_cast<double>(value));
}

}  // namespace thinwire
