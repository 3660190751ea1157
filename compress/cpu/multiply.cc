#include "compress/cpu/multiply.h"

#include "compress/cpu/blocks.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scratch.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/multiply.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
constexpr size_t kLanes = hn::MaxLanes(F32());

// out[0, n) = the sum of x[j] times row j of the factor over the `count` rows in `used`.
void MultiplyRowImpl(const float* HWY_RESTRICT x, const uint32_t* HWY_RESTRICT used, size_t count,
                     const float* HWY_RESTRICT factor, size_t n, float* HWY_RESTRICT out) {
  const F32 d;
  size_t c = 0;
  for (; c + 4 * kLanes <= n; c += 4 * kLanes) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (size_t k = 0; k < count; ++k) {
      const auto v = hn::Set(d, x[used[k]]);
      const float* const from = factor + used[k] * n + c;
      s0 = hn::Add(s0, hn::Mul(v, hn::LoadU(d, from)));
      s1 = hn::Add(s1, hn::Mul(v, hn::LoadU(d, from + kLanes)));
      s2 = hn::Add(s2, hn::Mul(v, hn::LoadU(d, from + 2 * kLanes)));
      s3 = hn::Add(s3, hn::Mul(v, hn::LoadU(d, from + 3 * kLanes)));
    }
    hn::StoreU(s0, d, out + c);
    hn::StoreU(s1, d, out + c + kLanes);
    hn::StoreU(s2, d, out + c + 2 * kLanes);
    hn::StoreU(s3, d, out + c + 3 * kLanes);
  }
  for (; c < n; c += kLanes) {
    auto sum = hn::Zero(d);
    for (size_t k = 0; k < count; ++k) {
      const auto row = LoadPart(d, factor + used[k] * n + c, n - c);
      sum = hn::Add(sum, hn::Mul(hn::Set(d, x[used[k]]), row));
    }
    StorePart(sum, d, out + c, n - c);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(MultiplyRowImpl);

namespace {

// Rows [first, last) of x.
void MultiplyRows(const TensorView& x, const TensorView& factor, const TensorView& out,
                  int64_t first, int64_t last) {
  static thread_local Scratch<float> x_memory, out_memory;
  static thread_local Scratch<uint32_t> used_memory;
  const int64_t k = factor.dims[0], n = factor.dims[1];
  float* const x_scratch = x_memory.Get(k);
  float* const out_scratch = out_memory.Get(n);
  uint32_t* const used = used_memory.Get(k + 1);
  for (int64_t i = first; i < last; ++i) {
    const float* const row = ReadFloats(x, i * k, k, x_scratch);
    size_t count = 0;
    for (int64_t j = 0; j < k; ++j) {
      used[count] = static_cast<uint32_t>(j);
      count += row[j] != 0;
    }
    float* const to = FloatsToWrite(out, i * n, out_scratch);
    HWY_DYNAMIC_DISPATCH(MultiplyRowImpl)
    (row, used, count, static_cast<const float*>(factor.data), n, to);
    FinishFloats(out, i * n, n, out_scratch);
  }
}

}  // namespace

Error CpuMultiply(const TensorView& x, const TensorView& factor, const TensorView& out,
                  int threads) {
  const int64_t n = factor.dims[1];
  if (out.elements() == 0) return Error{};
  const Parts parts(out.elements(), threads, n);
  ForEachPart(parts, [&](int, int64_t begin, int64_t end) {
    MultiplyRows(x, factor, out, begin / n, end / n);
  });
  return Error{};
}

}  // namespace thinwire
#endif  // HWY_ONCE
