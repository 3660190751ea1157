#include <algorithm>

#include "compress/bytes.h"
#include "compress/cpu/loops.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/rice.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using U32 = hn::CappedTag<uint32_t, 8>;
constexpr size_t kLanes = hn::MaxLanes(U32());
static_assert(8 % kLanes == 0, "eight entries are whole vectors");

// Turns the flags of eight entries into positions. Flag i of these stands behind `first` + i flags.
// `sums` are the running sums of the eight remainders, `sum` that of all before.
HWY_INLINE void PlaceEight(uint32_t* flags, const uint8_t* sums, int rice_bits, uint32_t first,
                           uint32_t sum) {
  const U32 d;
  const auto lanes = hn::Iota(d, 0u);
  for (size_t i = 0; i < 8; i += kLanes) {
    const auto entry = hn::Add(lanes, hn::Set(d, first + static_cast<uint32_t>(i)));
    const auto quotients = hn::Sub(hn::LoadU(d, flags + i), entry);
    const auto remainders = hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint8_t, U32>(), sums + i));
    const auto others = hn::Add(hn::Add(remainders, hn::Set(d, sum)), entry);
    hn::StoreU(hn::Add(hn::ShiftLeftSame(quotients, rice_bits), others), d, flags + i);
  }
}

uint32_t PositionsOfFlagsImpl(uint32_t* HWY_RESTRICT flags, const uint8_t* HWY_RESTRICT remainders,
                              size_t n, uint32_t rice_bits, uint32_t first, uint32_t sum) {
  const int k = static_cast<int>(rice_bits);
  uint8_t sums[8] = {};
  size_t i = 0;
  // Multiplying by a word of ones adds up eight copies, each shifted by one more byte: byte j of
  // the product is the sum of bytes 0 to j, a prefix sum in one multiplication.
  for (; i + 8 <= n; i += 8) {
    StoreAs(LoadAs<uint64_t>(remainders + i) * 0x0101010101010101, sums);
    PlaceEight(flags + i, sums, k, first + static_cast<uint32_t>(i), sum);
    sum += sums[7];
  }
  if (i == n) return sum;
  uint32_t rest[8] = {};
  std::copy(flags + i, flags + n, rest);
  StoreAs(LoadAs<uint64_t>(remainders + i) * 0x0101010101010101, sums);
  PlaceEight(rest, sums, k, first + static_cast<uint32_t>(i), sum);
  std::copy(rest, rest + (n - i), flags + i);
  return sum + sums[n - i - 1];
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(PositionsOfFlagsImpl);

uint32_t PositionsOfFlags(uint32_t* flags, const uint8_t* remainders, size_t n, uint32_t rice_bits,
                          uint32_t first, uint32_t sum) {
  return HWY_DYNAMIC_DISPATCH(PositionsOfFlagsImpl)(flags, remainders, n, rice_bits, first, sum);
}

}  // namespace thinwire
#endif  // HWY_ONCE
