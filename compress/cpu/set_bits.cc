#include "compress/cpu/set_bits.h"

#include <algorithm>

#include "compress/bytes.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/set_bits.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using U32 = hn::ScalableTag<uint32_t>;
constexpr size_t kLanes = hn::MaxLanes(U32());
static_assert(kLanes <= 32, "memory behind a list, and what a word is shifted by");

// Writes the numbers of the set bits and returns how many there are. `out` has memory for kLanes
// more.
size_t ListSetBitsImpl(const uint8_t* HWY_RESTRICT from, const uint8_t* end,
                       uint32_t* HWY_RESTRICT out) {
  const U32 d;
  const auto lanes = hn::Iota(d, 0u);
  size_t count = 0;
  for (uint32_t first = 0; from < end; from += 8, first += 64) {
    uint64_t bits = LoadUpTo8(from, end);
    auto number = hn::Add(lanes, hn::Set(d, first));
    // A vector holds the numbers of the next kLanes bits; those of set bits are stored side by
    // side.
    for (; bits != 0; bits >>= kLanes) {
      count += StoreCompressed(number, MaskOfBits(d, bits), d, out + count);
      number = hn::Add(number, hn::Set(d, kLanes));
    }
  }
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(ListSetBitsImpl);

void SetBits::ListNextBytes() {
  const uint8_t* const end = from_ + std::min<size_t>(end_ - from_, kBytesAtOnce);
  num_listed_ = HWY_DYNAMIC_DISPATCH(ListSetBitsImpl)(from_, end, listed_);
  next_ = 0;
  from_ = end;
  first_ = next_first_;
  next_first_ += 8 * kBytesAtOnce;
}

}  // namespace thinwire
#endif  // HWY_ONCE
