#include "compress/cpu/combine.h"

#include <algorithm>

#include "compress/cpu/blocks.h"

namespace thinwire {

Error CpuCombine(float a, const TensorView& x, float b, const TensorView& y,
                 const TensorView& out) {
  alignas(64) float x_scratch[kBlock], y_scratch[kBlock], out_scratch[kBlock];
  const int64_t total = out.elements();
  for (int64_t begin = 0; begin < total; begin += kBlock) {
    const size_t n = std::min<int64_t>(kBlock, total - begin);
    const float* from = ReadFloats(x, begin, n, x_scratch);
    const float* other = ReadFloats(y, begin, n, y_scratch);
    float* to = FloatsToWrite(out, begin, out_scratch);
    for (size_t i = 0; i < n; ++i) to[i] = a * from[i] + b * other[i];
    FinishFloats(out, begin, n, out_scratch);
  }
  return Error{};
}

}  // namespace thinwire
