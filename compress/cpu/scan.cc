#include "compress/cpu/scan.h"

#include "compress/cpu/parallel.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/scan.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
constexpr size_t kLanes = hn::MaxLanes(F32());

HWY_INLINE hn::Vec<I32> Magnitudes(hn::Vec<F32> x) {
  return hn::And(hn::BitCast(I32(), x), hn::Set(I32(), 0x7FFFFFFF));
}

HWY_INLINE uint32_t Largest(hn::Vec<I32> v) {
  return static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(I32(), v)));
}

void AddToRangeImpl(const float* HWY_RESTRICT x, size_t n, ValueRange* range) {
  if (n == 0) return;
  const F32 d;
  const I32 s;
  // Two sets of accumulators halve the wait for each other's results.
  auto min0 = hn::Set(d, range->min), min1 = min0;
  auto max0 = hn::Set(d, range->max), max1 = max0;
  auto top0 = hn::Set(s, static_cast<int32_t>(range->magnitude)), top1 = top0;
  size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    PrefetchPage(x + i);
    PrefetchPage(x + i + kLanes);
    const auto a = hn::LoadU(d, x + i);
    const auto b = hn::LoadU(d, x + i + kLanes);
    min0 = hn::Min(min0, a);
    min1 = hn::Min(min1, b);
    max0 = hn::Max(max0, a);
    max1 = hn::Max(max1, b);
    top0 = hn::Max(top0, Magnitudes(a));
    top1 = hn::Max(top1, Magnitudes(b));
  }
  for (; i < n; i += kLanes) {
    // Lanes behind the end repeat x[i], which changes neither extreme.
    const auto a = LoadPart(d, x + i, n - i, x[i]);
    min0 = hn::Min(min0, a);
    max0 = hn::Max(max0, a);
    top0 = hn::Max(top0, Magnitudes(a));
  }
  range->min = hn::GetLane(hn::MinOfLanes(d, hn::Min(min0, min1)));
  range->max = hn::GetLane(hn::MaxOfLanes(d, hn::Max(max0, max1)));
  range->magnitude = Largest(hn::Max(top0, top1));
}

uint32_t AddToRangesImpl(const float* HWY_RESTRICT x, size_t n, float* HWY_RESTRICT min,
                         float* HWY_RESTRICT max) {
  const F32 d;
  auto top = hn::Zero(I32());
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(x + i);
    const auto a = LoadPart(d, x + i, n - i);
    StorePart(hn::Min(LoadPart(d, min + i, n - i), a), d, min + i, n - i);
    StorePart(hn::Max(LoadPart(d, max + i, n - i), a), d, max + i, n - i);
    top = hn::Max(top, Magnitudes(a));
  }
  return Largest(top);
}

uint32_t LargestMagnitudeImpl(const float* HWY_RESTRICT x, size_t n) {
  auto top = hn::Zero(I32());
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(x + i);
    top = hn::Max(top, Magnitudes(LoadPart(F32(), x + i, n - i)));
  }
  return Largest(top);
}

uint32_t LargestFiniteMagnitudeImpl(const float* HWY_RESTRICT x, size_t n) {
  const auto infinity = hn::Set(I32(), 0x7F800000);
  auto top = hn::Zero(I32());
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(x + i);
    const auto magnitude = Magnitudes(LoadPart(F32(), x + i, n - i));
    top = hn::Max(top, hn::IfThenElseZero(hn::Lt(magnitude, infinity), magnitude));
  }
  return Largest(top);
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(AddToRangeImpl);
HWY_EXPORT(AddToRangesImpl);
HWY_EXPORT(LargestMagnitudeImpl);
HWY_EXPORT(LargestFiniteMagnitudeImpl);

void AddToRange(const float* x, size_t n, ValueRange* range) {
  HWY_DYNAMIC_DISPATCH(AddToRangeImpl)(x, n, range);
}
uint32_t AddToRanges(const float* x, size_t n, float* min, float* max) {
  return HWY_DYNAMIC_DISPATCH(AddToRangesImpl)(x, n, min, max);
}
uint32_t LargestMagnitude(const float* x, size_t n) {
  return HWY_DYNAMIC_DISPATCH(LargestMagnitudeImpl)(x, n);
}
uint32_t LargestMagnitude(const float* x, size_t n, int threads) {
  return LargestOfParts(Parts(n, threads), [&](int64_t begin, int64_t end) {
    return LargestMagnitude(x + begin, end - begin);
  });
}
uint32_t LargestMagnitude(const TensorView& x, int64_t begin, int64_t end) {
  uint32_t largest = 0;
  ReadBlocks(x, begin, end, [&](int64_t, size_t n, const float* values) {
    largest = std::max(largest, LargestMagnitude(values, n));
  });
  return largest;
}
uint32_t LargestFiniteMagnitude(const float* x, size_t n) {
  return HWY_DYNAMIC_DISPATCH(LargestFiniteMagnitudeImpl)(x, n);
}

}  // namespace thinwire
#endif  // HWY_ONCE
