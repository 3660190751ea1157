#include "compress/entropy/pairs.h"

#include <algorithm>

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/entropy/pairs.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
// Two codes in a lane of 16 bits become a pair in one of 8.
using Twos = hn::ScalableTag<uint16_t>;
using Codes = hn::Repartition<uint8_t, Twos>;
using Pairs = hn::Rebind<uint8_t, Twos>;
constexpr size_t kPairs = hn::MaxLanes(Twos());

// Appends the large codes and returns the end. It always stores and advances only for a large code,
// which saves an unpredictable branch.
uint8_t* AppendLarge(const uint8_t* codes, size_t n, uint8_t* large) {
  for (size_t i = 0; i < n; ++i) {
    *large = codes[i];
    large += codes[i] >= kLargeCode;
  }
  return large;
}

size_t ToPairsImpl(const uint8_t* HWY_RESTRICT codes, size_t n, uint8_t* HWY_RESTRICT pairs,
                   uint8_t* HWY_RESTRICT large) {
  const auto most = hn::Set(Codes(), kLargeCode);
  uint8_t* end = large;
  size_t i = 0;
  for (; i + 2 * kPairs <= n; i += 2 * kPairs) {
    const auto code = hn::LoadU(Codes(), codes + i);
    const auto small = hn::Min(code, most);
    if (HWY_UNLIKELY(!hn::AllFalse(Codes(), hn::Eq(small, most)))) {
      end = AppendLarge(codes + i, 2 * kPairs, end);
    }
    // The second code moves from bits 8 to 11 of its lane to bits 4 to 7, next to the first.
    const auto two = hn::BitCast(Twos(), small);
    const auto pair = hn::And(hn::Or(two, hn::ShiftRight<4>(two)), hn::Set(Twos(), 0xFF));
    hn::StoreU(hn::DemoteTo(Pairs(), hn::BitCast(hn::RebindToSigned<Twos>(), pair)), Pairs(),
               pairs + i / 2);
  }
  end = AppendLarge(codes + i, n - i, end);
  const auto small_at = [&](size_t j) { return j < n ? std::min(codes[j], kLargeCode) : 0; };
  for (; i < n; i += 2) pairs[i / 2] = static_cast<uint8_t>(small_at(i) | small_at(i + 1) << 4);
  return static_cast<size_t>(end - large);
}

const char* FromPairsImpl(const uint8_t* HWY_RESTRICT pairs, size_t n, const uint8_t* large,
                          size_t num_large, uint8_t* HWY_RESTRICT codes) {
  const uint8_t* const end = large + num_large;
  // Replaces each kLargeCode among some codes by the next large code. Returns false if there is
  // none or it is not large.
  const auto patch = [&](uint8_t* some, size_t count) {
    for (size_t j = 0; j < count; ++j) {
      if (some[j] != kLargeCode) continue;
      if (large == end) return false;
      some[j] = *large++;
      if (some[j] < kLargeCode) return false;
    }
    return true;
  };
  static constexpr char kWrong[] = "large codes that are too few or not large";
  const auto most = hn::Set(Codes(), kLargeCode);
  size_t i = 0;
  for (; i + 2 * kPairs <= n; i += 2 * kPairs) {
    const auto pair = hn::PromoteTo(Twos(), hn::LoadU(Pairs(), pairs + i / 2));
    const auto two = hn::And(hn::Or(pair, hn::ShiftLeft<4>(pair)), hn::Set(Twos(), 0x0F0F));
    const auto code = hn::BitCast(Codes(), two);
    hn::StoreU(code, Codes(), codes + i);
    if (HWY_LIKELY(hn::AllFalse(Codes(), hn::Eq(code, most)))) continue;
    if (!patch(codes + i, 2 * kPairs)) return kWrong;
  }
  for (size_t j = i; j < n; ++j) codes[j] = pairs[j / 2] >> (j % 2 * 4) & kLargeCode;
  if (!patch(codes + i, n - i)) return kWrong;
  return large == end ? nullptr : "large codes that are too many";
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(ToPairsImpl);
HWY_EXPORT(FromPairsImpl);

size_t ToPairs(const uint8_t* codes, size_t n, uint8_t* pairs, uint8_t* large) {
  return HWY_DYNAMIC_DISPATCH(ToPairsImpl)(codes, n, pairs, large);
}
const char* FromPairs(const uint8_t* pairs, size_t n, const uint8_t* large, size_t num_large,
                      uint8_t* codes) {
  return HWY_DYNAMIC_DISPATCH(FromPairsImpl)(pairs, n, large, num_large, codes);
}

}  // namespace thinwire
#endif  // HWY_ONCE
