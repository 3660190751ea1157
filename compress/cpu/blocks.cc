#include "compress/cpu/blocks.h"

#include "compress/cpu/loops.h"

namespace thinwire {

const float* ReadFloats(const TensorView& x, int64_t begin, size_t n, float* scratch) {
  if (x.dtype == DType::kF32) return static_cast<const float*>(x.data) + begin;
  WidenBFloat(static_cast<const uint8_t*>(x.data) + 2 * begin, n, scratch);
  return scratch;
}

float* FloatsToWrite(const TensorView& x, int64_t begin, float* scratch) {
  return x.dtype == DType::kF32 ? static_cast<float*>(x.data) + begin : scratch;
}

void FinishFloats(const TensorView& x, int64_t begin, size_t n, const float* scratch) {
  if (x.dtype == DType::kF32) return;
  NarrowToBFloat(scratch, n, static_cast<uint8_t*>(x.data) + 2 * begin);
}

}  // namespace thinwire
