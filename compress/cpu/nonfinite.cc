#include "compress/cpu/nonfinite.h"

#include <cmath>

#include "compress/cpu/blocks.h"
#include "compress/refusals.h"

namespace thinwire {

Error NonFiniteError(const char* codec, const TensorView& x) {
  float value = 0;
  int64_t i = 0;
  for (; i < x.elements(); ++i) {
    float scratch;
    value = *ReadFloats(x, i, 1, &scratch);
    if (!std::isfinite(value)) break;
  }
  return NonFiniteElement(codec, i, value);
}

}  // namespace thinwire
