#include "compress/cpu/combine.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/combine.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

#include <algorithm>

#include "compress/cpu/blocks.h"
#include "compress/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// `to` may be x or y: a vector is read before it is written.
void CombineImpl(float a, const float* x, float b, const float* y, size_t n, float* to) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto of_x = hn::Set(d, a), of_y = hn::Set(d, b);
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(x + i);
    PrefetchPage(y + i);
    const auto left = hn::Mul(of_x, LoadPart(d, x + i, n - i));
    const auto right = hn::Mul(of_y, LoadPart(d, y + i, n - i));
    StorePart(hn::Add(left, right), d, to + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(CombineImpl);

Error CpuCombine(float a, const TensorView& x, float b, const TensorView& y, const TensorView& out,
                 int threads) {
  ForEachPart(Parts(out.elements(), threads), [&](int, int64_t begin, int64_t end) {
    alignas(64) float x_scratch[kBlock], y_scratch[kBlock], out_scratch[kBlock];
    ForEachBlock(begin, end, [&](int64_t i, size_t n) {
      const float* from = ReadFloats(x, i, n, x_scratch);
      const float* other = ReadFloats(y, i, n, y_scratch);
      HWY_DYNAMIC_DISPATCH(CombineImpl)(a, from, b, other, n, FloatsToWrite(out, i, out_scratch));
      FinishFloats(out, i, n, out_scratch);
    });
  });
  return Error{};
}

}  // namespace thinwire
#endif  // HWY_ONCE
