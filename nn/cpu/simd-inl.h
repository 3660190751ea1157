// Loads and stores of fp32 and bf16 (nn/cpu/bf16.h) as fp32 vectors, and their sums in fp64, for
// every Highway target.

#if defined(THINWIRE_NN_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_NN_CPU_SIMD_INL_H_
#undef THINWIRE_NN_CPU_SIMD_INL_H_
#else
#define THINWIRE_NN_CPU_SIMD_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "nn/cpu/bf16.h"
#include "tensor/tensor.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

HWY_INLINE FloatVec LoadFloats(FloatTag d, const float* from) { return hn::LoadU(d, from); }
HWY_INLINE void StoreFloats(FloatVec v, FloatTag d, float* to) { hn::StoreU(v, d, to); }

// Widens bf16. A bf16 is the upper half of an fp32, so widening is a shift.
HWY_INLINE FloatVec LoadFloats(FloatTag d, const uint16_t* from) {
  const hn::Rebind<uint16_t, FloatTag> d16;
  const hn::RebindToUnsigned<FloatTag> d32;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, from))));
}

// Rounds as StoreOne (nn/cpu/bf16.h) does, with integer additions on the bits.
HWY_INLINE void StoreFloats(FloatVec v, FloatTag d, uint16_t* to) {
  const hn::Rebind<uint16_t, FloatTag> d16;
  const hn::RebindToUnsigned<FloatTag> d32;
  const auto bits = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
  auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7FFF))));
  rounded = hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(v)), hn::Set(d32, 0x7FC0), rounded);
  (void)d;
  hn::StoreU(hn::TruncateTo(d16, rounded), d16, to);
}

// Ways to access the elements of an array: as whole vectors, or as the rest of one. A kernel that
// takes either computes both alike, so no result depends on an element's place.
struct WholeVector {
  template <typename T>
  HWY_INLINE FloatVec Load(FloatTag d, const T* from) const {
    return LoadFloats(d, from);
  }
  template <typename T>
  HWY_INLINE void Store(FloatVec v, FloatTag d, T* to) const {
    StoreFloats(v, d, to);
  }
};

struct PartOfVector {
  size_t count;  // number of elements, fewer than a vector's

  template <typename T>
  HWY_INLINE FloatVec Load(FloatTag d, const T* from) const {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(float)] = {};
    for (size_t i = 0; i < count; ++i) lanes[i] = from[i];
    return LoadFloats(d, lanes);
  }
  template <typename T>
  HWY_INLINE void Store(FloatVec v, FloatTag d, T* to) const {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(float)];
    StoreFloats(v, d, lanes);
    for (size_t i = 0; i < count; ++i) to[i] = lanes[i];
  }
};

// Calls kernel(access, i) for the vectors that begin at i in [0, n).
template <typename Kernel>
HWY_INLINE void ForEachVector(int64_t n, const Kernel& kernel) {
  const int64_t lanes = hn::Lanes(FloatTag());
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) kernel(WholeVector{}, i);
  if (i < n) kernel(PartOfVector{static_cast<size_t>(n - i)}, i);
}

// Calls use(T()) for the element type T of tensors.
template <typename Use>
HWY_INLINE void WithType(DType type, const Use& use) {
  type == DType::kF32 ? use(float()) : use(uint16_t());
}

// Computes to[i] = f(d, from[i]...) for i in [0, n). The memory may be the same.
template <typename Function, typename To, typename... From>
HWY_INLINE void Map(int64_t n, const Function& f, To* to, const From*... from) {
  ForEachVector(n, [&](const auto& access, int64_t i) HWY_ATTR {
    const FloatTag d;
    access.Store(f(d, access.Load(d, from + i)...), d, to + i);
  });
}

// Does the same for elements [begin, end) of tensors of one type.
template <typename Function, typename... Views>
HWY_INLINE void MapRange(int64_t begin, int64_t end, const Function& f, const TensorView& to,
                         const Views&... from) {
  WithType(to.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    Map(end - begin, f, to.as<T>() + begin, from.template as<const T>() + begin...);
  });
}

// Computes sums[i] += v[i].
HWY_INLINE void AddToDoubles(FloatVec v, FloatTag d, double* sums) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) sums[i] += static_cast<double>(lanes[i]);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
