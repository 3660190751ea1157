#include <algorithm>
#include <cstdint>

#include "nn/checks.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/dropout.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/dropout_mask-inl.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

template <typename T>
struct DropKernel {
  const T* x;
  T* y;
  DropoutMask mask;
  float scale;
  int64_t first;  // index in the sample of the element at x

  template <typename Access>
  HWY_INLINE void operator()(const Access& access, int64_t i) const {
    const FloatTag d;
    const FloatVec kept = KeptOf(d, mask, static_cast<uint32_t>(first + i),
                                 hn::Mul(access.Load(d, x + i), hn::Set(d, scale)));
    access.Store(kept, d, y + i);
  }
};

template <typename T>
void DropTyped(const Dropout& a, int64_t features, int64_t begin, int64_t end) {
  const float scale = 1.0f / (1.0f - a.rate);
  for (int64_t i = begin; i < end;) {
    const int64_t sample = i / features;
    const int64_t stop = std::min(end, (sample + 1) * features);
    ForEachVector(stop - i,
                  DropKernel<T>{static_cast<const T*>(a.x.data) + i, static_cast<T*>(a.y.data) + i,
                                DropoutMask(a.key, a.first_sample + sample, a.rate), scale,
                                a.first_element + i - sample * features});
    i = stop;
  }
}

void DropRange(const Dropout& a, int64_t features, int64_t begin, int64_t end) {
  a.x.dtype == DType::kF32 ? DropTyped<float>(a, features, begin, end)
                           : DropTyped<uint16_t>(a, features, begin, end);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(DropRange);

namespace cpu {
namespace {

constexpr int64_t kGrain = 8 * 1024;  // elements; with fewer, one thread is faster

}  // namespace

Error Kernels::Drop(const Dropout& a) {
  RETURN_ERROR(CheckDropout(a));
  const int64_t elements = a.x.elements();
  if (elements == 0) return Error{};
  const int64_t features = elements / a.x.dims[0];
  ParallelRange(threads_, elements, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(DropRange)(a, features, begin, end);
  });
  return Error{};
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
