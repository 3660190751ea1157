#include "compress/cpu/nonfinite.h"

#include <cmath>

#include "compress/cpu/blocks.h"
#include "compress/refusals.h"

namespace thinwire {

namespace {

float ValueOf(const TensorView& x, int64_t i) {
  float scratch;
  return *ReadFloats(x, i, 1, &scratch);
}

bool IsSupported(const SupportView* support, int64_t i) {
  return support == nullptr || (support->words[i / 64] >> (i % 64) & 1) != 0;
}

}  // namespace

int64_t FirstNonFinite(const TensorView& x, const SupportView* support) {
  int64_t i = 0;
  while (i < x.elements() && (!IsSupported(support, i) || std::isfinite(ValueOf(x, i)))) ++i;
  return i;
}

Error NonFiniteError(const char* codec, const TensorView& x, const SupportView* support) {
  const int64_t first = FirstNonFinite(x, support);
  return NonFiniteElement(codec, first, ValueOf(x, first));
}

}  // namespace thinwire
