#include "compress/cpu/loops.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/fp8_convert.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U8 = hn::Rebind<uint8_t, F32>;
using Floats = hn::Vec<F32>;
using Ints = hn::Vec<I32>;
constexpr size_t kLanes = hn::MaxLanes(F32());

// Format with `kFractionBits` bits of fraction and an exponent biased by `kBias`.
template <int kFractionBits, int kBias>
struct Fp8Lanes {
  static constexpr int kShift = 23 - kFractionBits;
  static constexpr int kRebias = (127 - kBias) << 23;
  static constexpr int kLeastNormal = (128 - kBias) << 23;            // bits of 2^(1 - bias)
  static constexpr int kLeastExponent = 1 - kBias - kFractionBits;    // exponent of the last bit
  static constexpr int kLastBit = (127 + kLeastExponent) << 23;       // bits of its value
  static constexpr int kRounder = (127 + 23 + kLeastExponent) << 23;  // float whose ulp is that bit

  // Returns the code of x, 0 <= x <= the largest value. Normal numbers: adding half of the last bit
  // less one, plus that bit, rounds to nearest even; the bias changes in the same addition.
  static HWY_INLINE Ints Narrow(Floats x) {
    const F32 f;
    const I32 s;
    const auto bits = hn::BitCast(s, x);
    // Below the normal numbers: adding a float whose last bit is the format's last bit makes the
    // adder round there; the difference of the bits is the code.
    const auto rounder = hn::Set(s, kRounder);
    const auto tiny = hn::Sub(hn::BitCast(s, hn::Add(x, hn::BitCast(f, rounder))), rounder);
    const auto odd = hn::And(hn::ShiftRight<kShift>(bits), hn::Set(s, 1));
    const auto rebased = hn::Add(bits, hn::Set(s, (1 << (kShift - 1)) - 1 - kRebias));
    const auto normal = hn::ShiftRight<kShift>(hn::Add(rebased, odd));
    return hn::IfThenElse(hn::Lt(bits, hn::Set(s, kLeastNormal)), tiny, normal);
  }

  static HWY_INLINE Floats Widen(Ints magnitude) {
    const F32 f;
    const I32 s;
    const auto normal = hn::Add(hn::ShiftLeft<kShift>(magnitude), hn::Set(s, kRebias));
    const auto tiny = hn::Mul(hn::ConvertTo(f, magnitude), hn::BitCast(f, hn::Set(s, kLastBit)));
    const auto is_tiny = hn::Lt(magnitude, hn::Set(s, 1 << kFractionBits));
    return hn::BitCast(f, hn::IfThenElse(is_tiny, hn::BitCast(s, tiny), normal));
  }
};

template <class Format>
HWY_INLINE void NarrowAll(const float* HWY_RESTRICT x, size_t n, const Fp8Line& line,
                          uint8_t* HWY_RESTRICT codes) {
  const F32 f;
  const I32 s;
  const auto scale = hn::Set(f, line.scale);
  const auto largest = hn::Set(s, line.largest_code);
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(x + i);
    const auto v = LoadPart(f, x + i, n - i);
    const auto sign = hn::And(hn::ShiftRight<24>(hn::BitCast(s, v)), hn::Set(s, 0x80));
    const auto magnitude = hn::Min(Format::Narrow(hn::Mul(hn::Abs(v), scale)), largest);
    StorePart(hn::DemoteTo(U8(), hn::Or(magnitude, sign)), U8(), codes + i, n - i);
  }
}

template <class Format>
HWY_INLINE uint8_t WidenAll(const uint8_t* HWY_RESTRICT codes, size_t n, float scale,
                            float* HWY_RESTRICT x) {
  const F32 f;
  const I32 s;
  const auto scales = hn::Set(f, scale);
  auto largest = hn::Zero(s);
  for (size_t i = 0; i < n; i += kLanes) {
    const auto code = hn::PromoteTo(s, LoadPart(U8(), codes + i, n - i));
    const auto magnitude = hn::And(code, hn::Set(s, 0x7F));
    largest = hn::Max(largest, magnitude);
    const auto sign = hn::BitCast(f, hn::ShiftLeft<24>(hn::Xor(code, magnitude)));
    StorePart(hn::Mul(hn::Or(Format::Widen(magnitude), sign), scales), f, x + i, n - i);
  }
  return static_cast<uint8_t>(hn::GetLane(hn::MaxOfLanes(s, largest)));
}

using E4M3 = Fp8Lanes<3, 7>;
using E5M2 = Fp8Lanes<2, 15>;

void NarrowToFp8Impl(const float* x, size_t n, Fp8Format format, const Fp8Line& line,
                     uint8_t* codes) {
  if (format == Fp8Format::kE4M3) return NarrowAll<E4M3>(x, n, line, codes);
  NarrowAll<E5M2>(x, n, line, codes);
}

uint8_t WidenFp8Impl(const uint8_t* codes, size_t n, Fp8Format format, float scale, float* x) {
  if (format == Fp8Format::kE4M3) return WidenAll<E4M3>(codes, n, scale, x);
  return WidenAll<E5M2>(codes, n, scale, x);
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(NarrowToFp8Impl);
HWY_EXPORT(WidenFp8Impl);

void NarrowToFp8(const float* x, size_t n, Fp8Format format, const Fp8Line& line, uint8_t* codes) {
  HWY_DYNAMIC_DISPATCH(NarrowToFp8Impl)(x, n, format, line, codes);
}
uint8_t WidenFp8(const uint8_t* codes, size_t n, Fp8Format format, float scale, float* x) {
  return HWY_DYNAMIC_DISPATCH(WidenFp8Impl)(codes, n, format, scale, x);
}

}  // namespace thinwire
#endif  // HWY_ONCE
