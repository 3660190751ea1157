#include <algorithm>

#include "compress/cpu/loops.h"
#include "compress/cpu/rotation.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/hadamard.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

// Two steps of the transform (h and 2 h) take one pass over memory: same sums, half the traffic.
HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
constexpr size_t kLanes = hn::MaxLanes(F32());
static_assert(kLanes <= 16, "a pass takes 64 elements at a time");

void FlipSignsImpl(const float* from, size_t n, const uint32_t* HWY_RESTRICT numbers, float* to) {
  const F32 f;
  const U32 u;
  HWY_ALIGN uint32_t bit_of_lane[32];
  for (int i = 0; i < 32; ++i) bit_of_lane[i] = 1u << i;
  const auto sign = hn::Set(u, 0x80000000u);
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(from + i);
    const auto bits = hn::Set(u, numbers[i / 32]);
    const auto negated = hn::TestBit(bits, hn::Load(u, bit_of_lane + i % 32));
    const auto x = hn::BitCast(u, LoadPart(f, from + i, n - i));
    const auto flipped = hn::Xor(x, hn::IfThenElseZero(negated, sign));
    StorePart(hn::BitCast(f, flipped), f, to + i, n - i);
  }
}

// Does step h = 1, for blocks of two.
void FirstStep(float* HWY_RESTRICT x, size_t n) {
  const F32 f;
  for (size_t i = 0; i < n; i += 2 * kLanes) {
    hn::Vec<F32> a, b;
    hn::LoadInterleaved2(f, x + i, a, b);
    hn::StoreInterleaved2(hn::Add(a, b), hn::Sub(a, b), f, x + i);
  }
}

// Does steps h = 1 and h = 2. Interleaved loads bring every fourth element into one vector.
void FirstTwoSteps(float* HWY_RESTRICT x, size_t n) {
  const F32 f;
  for (size_t i = 0; i < n; i += 4 * kLanes) {
    hn::Vec<F32> a, b, c, d;
    hn::LoadInterleaved4(f, x + i, a, b, c, d);
    const auto ab = hn::Add(a, b), a_b = hn::Sub(a, b);
    const auto cd = hn::Add(c, d), c_d = hn::Sub(c, d);
    hn::StoreInterleaved4(hn::Add(ab, cd), hn::Add(a_b, c_d), hn::Sub(ab, cd), hn::Sub(a_b, c_d), f,
                          x + i);
  }
}

// Does one step with vectors of D, whose length divides h.
template <class D>
HWY_INLINE void Step(D f, float* HWY_RESTRICT x, size_t n, size_t h) {
  for (size_t begin = 0; begin < n; begin += 2 * h) {
    for (size_t i = begin; i < begin + h; i += hn::MaxLanes(f)) {
      const auto a = hn::LoadU(f, x + i), b = hn::LoadU(f, x + i + h);
      hn::StoreU(hn::Add(a, b), f, x + i);
      hn::StoreU(hn::Sub(a, b), f, x + i + h);
    }
  }
}

// Does the steps h and 2 h.
template <class D>
HWY_INLINE void TwoSteps(D f, float* HWY_RESTRICT x, size_t n, size_t h) {
  for (size_t begin = 0; begin < n; begin += 4 * h) {
    for (size_t i = begin; i < begin + h; i += hn::MaxLanes(f)) {
      const auto a = hn::LoadU(f, x + i), b = hn::LoadU(f, x + i + h);
      const auto c = hn::LoadU(f, x + i + 2 * h), d = hn::LoadU(f, x + i + 3 * h);
      const auto ab = hn::Add(a, b), a_b = hn::Sub(a, b);
      const auto cd = hn::Add(c, d), c_d = hn::Sub(c, d);
      hn::StoreU(hn::Add(ab, cd), f, x + i);
      hn::StoreU(hn::Add(a_b, c_d), f, x + i + h);
      hn::StoreU(hn::Sub(ab, cd), f, x + i + 2 * h);
      hn::StoreU(hn::Sub(a_b, c_d), f, x + i + 3 * h);
    }
  }
}

// Vector type of at most kMost lanes, and at most as many as this target has.
template <size_t kMost>
using Part = hn::CappedTag<float, kMost>;

// Transforms without scaling. n is a multiple of 64 and of size, which is at least 2.
void TransformImpl(float* HWY_RESTRICT x, size_t n, size_t size) {
  if (size == 2) return FirstStep(x, n);
  FirstTwoSteps(x, n);
  if (size == 8) return Step(Part<4>(), x, n, 4);
  if (size >= 16) TwoSteps(Part<4>(), x, n, 4);
  size_t h = 16;
  for (; 4 * h <= size; h *= 4) TwoSteps(F32(), x, n, h);
  if (2 * h == size) Step(F32(), x, n, h);
}

void ScaleImpl(float* HWY_RESTRICT x, size_t n, float factor) {
  const F32 f;
  const auto factors = hn::Set(f, factor);
  for (size_t i = 0; i < n; i += kLanes) {
    StorePart(hn::Mul(LoadPart(f, x + i, n - i), factors), f, x + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(FlipSignsImpl);
HWY_EXPORT(TransformImpl);
HWY_EXPORT(ScaleImpl);

namespace {

constexpr size_t kStride = 64;         // a multiple of four vectors of every target
constexpr size_t kRunOfBlocks = 4096;  // elements of small blocks that pass together

// Transforms fewer elements than a pass takes at a time, padded with zeros.
void TransformRest(float* x, size_t n, size_t size) {
  alignas(64) float padded[kStride] = {};
  std::copy(x, x + n, padded);
  HWY_DYNAMIC_DISPATCH(TransformImpl)(padded, kStride, size);
  std::copy(padded, padded + n, x);
}

}  // namespace

void FlipSigns(const float* from, size_t n, const uint32_t* numbers, float* to) {
  HWY_DYNAMIC_DISPATCH(FlipSignsImpl)(from, n, numbers, to);
}

void Hadamard(float* x, size_t n, size_t size) {
  if (size == 1) return;
  const size_t step = std::max(size, kRunOfBlocks);
  for (size_t begin = 0; begin < n; begin += step) {
    const size_t length = std::min(step, n - begin);
    const size_t whole = length / kStride * kStride;
    if (whole > 0) HWY_DYNAMIC_DISPATCH(TransformImpl)(x + begin, whole, size);
    if (whole < length) TransformRest(x + begin + whole, length - whole, size);
    HWY_DYNAMIC_DISPATCH(ScaleImpl)(x + begin, length, InverseRoot(size));
  }
}

}  // namespace thinwire
#endif  // HWY_ONCE
