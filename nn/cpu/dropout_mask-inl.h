// Computes DropoutMask (nn/dropout_mask.h) for a vector of elements, for every Highway target.

#if defined(THINWIRE_NN_CPU_DROPOUT_MASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_NN_CPU_DROPOUT_MASK_INL_H_
#undef THINWIRE_NN_CPU_DROPOUT_MASK_INL_H_
#else
#define THINWIRE_NN_CPU_DROPOUT_MASK_INL_H_
#endif

#include "hwy/highway.h"
#include "nn/cpu/simd-inl.h"
#include "nn/dropout_mask.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

template <typename V, typename D>
HWY_INLINE V MixedBits(D d32, V x) {
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d32, 0x7FEB352Du));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d32, 0x846CA68Bu));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

// Returns v[i] if the mask keeps element + i, else 0.
HWY_INLINE FloatVec KeptOf(FloatTag d, const DropoutMask& mask, uint32_t element, FloatVec v) {
  const hn::RebindToUnsigned<FloatTag> d32;
  const hn::RebindToSigned<FloatTag> ds32;
  const auto elements = hn::Add(hn::Iota(d32, 0), hn::Set(d32, element));
  auto x = hn::Xor(elements, hn::Set(d32, static_cast<uint32_t>(mask.words)));
  x = hn::Add(MixedBits(d32, x), hn::Set(d32, static_cast<uint32_t>(mask.words >> 32)));
  // The draw has 24 bits, so a signed comparison, which every target has, gives the same result.
  const auto draw = hn::BitCast(ds32, hn::ShiftRight<8>(MixedBits(d32, x)));
  const auto dropped = hn::Lt(draw, hn::Set(ds32, static_cast<int32_t>(mask.dropped)));
  return hn::IfThenZeroElse(hn::RebindMask(d, dropped), v);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
