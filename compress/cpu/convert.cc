#include "compress/cpu/loops.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/convert.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using U16 = hn::Rebind<uint16_t, F32>;
constexpr size_t kLanes = hn::MaxLanes(F32());

const uint16_t* AsU16(const uint8_t* p) { return reinterpret_cast<const uint16_t*>(p); }
uint16_t* AsU16(uint8_t* p) { return reinterpret_cast<uint16_t*>(p); }

// Narrows values below 2^16, for which saturation never acts.
HWY_INLINE hn::Vec<U16> LowHalves(hn::Vec<U32> bits) {
  return hn::DemoteTo(U16(), hn::BitCast(I32(), bits));
}

// Rounds as ToBFloat of half.h: adding 0x7FFF and the lowest bit that stays rounds to nearest even;
// 0x40 keeps a NaN a NaN.
HWY_INLINE hn::Vec<U16> ToBFloatLanes(hn::Vec<F32> x) {
  const U32 u;
  const auto bits = hn::BitCast(u, x);
  const auto top = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(top, hn::Set(u, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(u, 0x7FFF)), odd));
  const auto magnitude = hn::BitCast(I32(), hn::And(bits, hn::Set(u, 0x7FFFFFFF)));
  const auto is_nan = hn::RebindMask(u, hn::Gt(magnitude, hn::Set(I32(), 0x7F800000)));
  return LowHalves(hn::IfThenElse(is_nan, hn::Or(top, hn::Set(u, 0x40)), rounded));
}

HWY_INLINE hn::Vec<F32> FromBFloatLanes(hn::Vec<U16> b) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), b)));
}

// Rounds as ToHalf of half.h, with sign, infinity and NaN. It computes the results for tiny, normal
// and huge magnitudes in all lanes and then selects.
HWY_INLINE hn::Vec<U16> ToHalfLanes(hn::Vec<F32> x) {
  const F32 f;
  const U32 u;
  const I32 s;
  const auto bits = hn::BitCast(u, x);
  const auto magnitude = hn::And(bits, hn::Set(u, 0x7FFFFFFF));
  const auto sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
  const auto ordered = hn::BitCast(s, magnitude);

  const auto half = hn::Set(f, 0.5f);
  const auto tiny =
      hn::Sub(hn::BitCast(u, hn::Add(hn::BitCast(f, magnitude), half)), hn::BitCast(u, half));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(u, 1));
  const auto rebased = hn::Sub(hn::Add(magnitude, hn::Set(u, 0xFFF)), hn::Set(u, 112u << 23));
  const auto normal = hn::ShiftRight<13>(hn::Add(rebased, odd));
  const auto is_nan = hn::RebindMask(u, hn::Gt(ordered, hn::Set(s, 0x7F800000)));
  const auto huge = hn::IfThenElse(is_nan, hn::Set(u, 0x7E00), hn::Set(u, 0x7C00));

  const auto is_tiny = hn::RebindMask(u, hn::Lt(ordered, hn::Set(s, 113 << 23)));
  const auto is_huge = hn::RebindMask(u, hn::Gt(ordered, hn::Set(s, (143 << 23) - 1)));
  const auto finite = hn::IfThenElse(is_tiny, tiny, normal);
  return LowHalves(hn::Or(hn::IfThenElse(is_huge, huge, finite), sign));
}

// Replaces the last floats, which would round up to 2^128 and decode as infinity, by the largest
// float of eleven bits.
HWY_INLINE hn::Vec<F32> RoundableToHalf(hn::Vec<F32> x) {
  const I32 s;
  const auto bits = hn::BitCast(s, x);
  const auto magnitude = hn::And(bits, hn::Set(s, 0x7FFFFFFF));
  const auto most = hn::Set(s, 0x7F7FE000);
  const auto too_large =
      hn::And(hn::Gt(magnitude, most), hn::Lt(magnitude, hn::Set(s, 0x7F800000)));
  const auto sign = hn::Xor(bits, magnitude);
  return hn::BitCast(F32(), hn::IfThenElse(too_large, hn::Or(most, sign), bits));
}

// Widens as FromHalf of half.h, with sign, infinity and NaN: the mantissa moves up by 13 bits, the
// exponent by the difference of the biases, 112. Halves below 0x400 are denormal: they have no
// exponent of their own and are multiplied by 2^-24.
HWY_INLINE hn::Vec<F32> FromHalfLanes(hn::Vec<U16> h) {
  const F32 f;
  const U32 u;
  const I32 s;
  const auto wide = hn::PromoteTo(u, h);
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(u, 0x8000)));
  const auto magnitude = hn::And(wide, hn::Set(u, 0x7FFF));
  const auto shifted = hn::Add(hn::ShiftLeft<13>(magnitude), hn::Set(u, 112u << 23));
  // Infinity and NaN need the other 112 steps of exponent too.
  const auto ordered = hn::BitCast(s, magnitude);
  const auto is_huge = hn::RebindMask(u, hn::Gt(ordered, hn::Set(s, 0x7BFF)));
  const auto normal = hn::Add(shifted, hn::IfThenElseZero(is_huge, hn::Set(u, 112u << 23)));
  const auto tiny = hn::BitCast(u, hn::Mul(hn::ConvertTo(f, ordered), hn::Set(f, 0x1p-24f)));
  const auto is_tiny = hn::RebindMask(u, hn::Lt(ordered, hn::Set(s, 0x400)));
  return hn::BitCast(f, hn::Or(hn::IfThenElse(is_tiny, tiny, normal), sign));
}

void NarrowToBFloatImpl(const float* HWY_RESTRICT from, size_t n, uint8_t* HWY_RESTRICT to) {
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(from + i);
    StorePart(ToBFloatLanes(LoadPart(F32(), from + i, n - i)), U16(), AsU16(to + 2 * i), n - i);
  }
}

void WidenBFloatImpl(const uint8_t* HWY_RESTRICT from, size_t n, float* HWY_RESTRICT to) {
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(from + 2 * i);
    const auto b = LoadPart(U16(), AsU16(from + 2 * i), n - i);
    StorePart(FromBFloatLanes(b), F32(), to + i, n - i);
  }
}

void NarrowToHalfImpl(const float* HWY_RESTRICT from, size_t n, float scale,
                      uint8_t* HWY_RESTRICT to) {
  const auto scales = hn::Set(F32(), scale);
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(from + i);
    const auto x = hn::Mul(RoundableToHalf(LoadPart(F32(), from + i, n - i)), scales);
    StorePart(ToHalfLanes(x), U16(), AsU16(to + 2 * i), n - i);
  }
}

void WidenHalfImpl(const uint8_t* HWY_RESTRICT from, size_t n, float scale,
                   float* HWY_RESTRICT to) {
  const auto scales = hn::Set(F32(), scale);
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(from + 2 * i);
    const auto h = LoadPart(U16(), AsU16(from + 2 * i), n - i);
    StorePart(hn::Mul(FromHalfLanes(h), scales), F32(), to + i, n - i);
  }
}

// Copies floats. Not by memcpy, which GCC turns into a slow `rep movs`.
void CopyFloatsImpl(const uint8_t* HWY_RESTRICT from, size_t n, float* HWY_RESTRICT to) {
  const float* floats = reinterpret_cast<const float*>(from);
  for (size_t i = 0; i < n; i += kLanes) {
    StorePart(LoadPart(F32(), floats + i, n - i), F32(), to + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(NarrowToBFloatImpl);
HWY_EXPORT(WidenBFloatImpl);
HWY_EXPORT(NarrowToHalfImpl);
HWY_EXPORT(WidenHalfImpl);
HWY_EXPORT(CopyFloatsImpl);

void NarrowToBFloat(const float* from, size_t n, uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(NarrowToBFloatImpl)(from, n, to);
}
void WidenBFloat(const uint8_t* from, size_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(WidenBFloatImpl)(from, n, to);
}
void NarrowToHalf(const float* from, size_t n, float scale, uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(NarrowToHalfImpl)(from, n, scale, to);
}
void WidenHalf(const uint8_t* from, size_t n, float scale, float* to) {
  HWY_DYNAMIC_DISPATCH(WidenHalfImpl)(from, n, scale, to);
}
void CopyFloats(const uint8_t* from, size_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(CopyFloatsImpl)(from, n, to);
}

}  // namespace thinwire
#endif  // HWY_ONCE
