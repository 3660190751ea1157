#include "compress/cpu/support_ranks.h"

namespace thinwire {

void ToRanks(const SupportView& support, uint32_t* positions, size_t n) {
  int64_t word = 0;
  uint32_t before = 0;  // set bits in the words before
  for (size_t i = 0; i < n; ++i) {
    const int64_t position = positions[i];
    for (; word < position / 64; ++word) before += __builtin_popcountll(support.words[word]);
    // One less than the position's bit has all lower bits set; the rank counts those of them that
    // have support.
    const uint64_t lower = (uint64_t{1} << (position % 64)) - 1;
    positions[i] = before + __builtin_popcountll(support.words[word] & lower);
  }
}

SupportedPositions::SupportedPositions(const SupportView& support) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(support.words);
  bits_.Open(bytes, bytes + (support.elements + 63) / 64 * 8);
}

void SupportedPositions::FromRanks(uint32_t* ranks, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t listed = bits_.size(); ranks[i] - rank_ >= listed; listed = bits_.size()) {
      rank_ += listed;
      bits_.Skip(listed);
    }
    ranks[i] = static_cast<uint32_t>(bits_.first()) + bits_.offsets()[ranks[i] - rank_];
  }
}

}  // namespace thinwire
