#include <cstring>

#include "compress/cpu/loops.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/codebook.cc"
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
constexpr size_t kLanes = hn::MaxLanes(F32());

void NearestCodesImpl(const float* HWY_RESTRICT x, size_t n, float absmax,
                      const int32_t* HWY_RESTRICT entries, uint8_t* HWY_RESTRICT codes) {
  const F32 f;
  const I32 s;
  const auto unit = hn::Set(f, absmax);
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(x + i);
    const auto t = hn::Div(LoadPart(f, x + i, n - i), unit);
    // An arithmetic shift spreads the sign: -1 for negative values, which use the table's second
    // half.
    const auto negative = hn::ShiftRight<31>(hn::BitCast(s, t));
    const auto bits = hn::Max(hn::BitCast(s, hn::Abs(t)), hn::Set(s, kCodebookLeastBits));
    const auto bucket =
        hn::Add(hn::Sub(hn::ShiftRight<kCodebookLowBits>(bits), hn::Set(s, kCodebookFirstBucket)),
                hn::And(negative, hn::Set(s, kCodebookBuckets)));
    const auto entry = hn::GatherIndex(s, entries, bucket);
    // The lower bits carry into the rank where |t| is above the bucket's limit (codebook_table.h).
    const auto low = hn::And(bits, hn::Set(s, kCodebookLowMask));
    const auto rank = hn::ShiftRight<kCodebookLowBits>(hn::Add(entry, low));
    // Negates the rank where `negative` is -1 (complement plus one) and leaves it where that is 0.
    const auto signed_rank = hn::Sub(hn::Xor(rank, negative), negative);
    const auto code = hn::Add(signed_rank, hn::Set(s, kZeroCode));
    StorePart(hn::DemoteTo(U8(), code), U8(), codes + i, n - i);
  }
}

void ValuesOfCodesImpl(const uint8_t* HWY_RESTRICT codes, size_t n, float absmax,
                       const float* HWY_RESTRICT values, float* HWY_RESTRICT x) {
  const F32 f;
  const I32 s;
  const auto unit = hn::Set(f, absmax);
  for (size_t i = 0; i < n; i += kLanes) {
    const auto code = hn::PromoteTo(s, LoadPart(U8(), codes + i, n - i));
    StorePart(hn::Mul(hn::GatherIndex(f, values, code), unit), f, x + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(NearestCodesImpl);
HWY_EXPORT(ValuesOfCodesImpl);

void NearestCodes(const float* x, size_t n, float absmax, uint8_t* codes) {
  if (absmax == 0) {
    std::memset(codes, kZeroCode, n);
    return;
  }
  HWY_DYNAMIC_DISPATCH(NearestCodesImpl)(x, n, absmax, TheCodebookTable().entries, codes);
}
void ValuesOfCodes(const uint8_t* codes, size_t n, float absmax, float* x) {
  static const std::array<float, 256> values = CodebookValues();
  HWY_DYNAMIC_DISPATCH(ValuesOfCodesImpl)(codes, n, absmax, values.data(), x);
}

}  // namespace thinwire
#endif  // HWY_ONCE
