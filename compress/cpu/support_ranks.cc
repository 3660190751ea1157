#include "compress/cpu/support_ranks.h"

#include <algorithm>

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/support_ranks.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using U32 = hn::ScalableTag<uint32_t>;
constexpr size_t kLanes = hn::MaxLanes(U32());

// Writes the numbers of the set bits, the first of which has the number `base`, and returns how
// many. Memory for kLanes more.
size_t ListSetBitsImpl(const uint64_t* HWY_RESTRICT words, size_t num_words, uint32_t base,
                       uint32_t* HWY_RESTRICT out) {
  const U32 d;
  size_t count = 0;
  for (size_t word = 0; word < num_words; ++word) {
    uint64_t bits = words[word];
    auto position = hn::Iota(d, base + static_cast<uint32_t>(64 * word));
    for (; bits != 0; bits >>= kLanes) {
      count += StoreCompressed(position, MaskOfBits(d, bits), d, out + count);
      position = hn::Add(position, hn::Set(d, kLanes));
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

void ToRanks(const SupportView& support, uint32_t* positions, size_t n) {
  int64_t word = 0;
  uint32_t before = 0;  // set bits of the words before
  for (size_t i = 0; i < n; ++i) {
    const int64_t position = positions[i];
    for (; word < position / 64; ++word) before += __builtin_popcountll(support.words[word]);
    const uint64_t lower = (uint64_t{1} << (position % 64)) - 1;
    positions[i] = before + __builtin_popcountll(support.words[word] & lower);
  }
}

void SupportedPositions::ListNextRun() {
  const int64_t n = std::min(kRun, support_.elements - next_);
  first_rank_ += num_listed_;
  num_listed_ = static_cast<uint32_t>(HWY_DYNAMIC_DISPATCH(ListSetBitsImpl)(
      support_.words + next_ / 64, (n + 63) / 64, static_cast<uint32_t>(next_), positions_));
  next_ += n;
}

void SupportedPositions::FromRanks(uint32_t* ranks, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    while (ranks[i] - first_rank_ >= num_listed_) ListNextRun();
    ranks[i] = positions_[ranks[i] - first_rank_];
  }
}

}  // namespace thinwire
#endif  // HWY_ONCE
