#include "compress/cpu/support_ranks.h"

namespace thinwire {

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

void SupportedPositions::FromRanks(uint32_t* ranks, size_t n) {
  int64_t word = word_;
  uint64_t left = left_;
  uint32_t rank = rank_;
  for (size_t i = 0; i < n; ++i) {
    uint32_t skip = ranks[i] - rank;
    for (uint32_t set; (set = __builtin_popcountll(left)) <= skip;) {
      skip -= set;
      left = support_.words[++word];
    }
    for (; skip > 0; --skip) left &= left - 1;
    rank = ranks[i] + 1;
    ranks[i] = static_cast<uint32_t>(64 * word + __builtin_ctzll(left));
    left &= left - 1;
  }
  word_ = word;
  left_ = left;
  rank_ = rank;
}

}  // namespace thinwire
