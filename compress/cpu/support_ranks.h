// A position in a tensor as a rank: how many supported entries lie before it. Both ends know the
// support, so ranks, which are fewer, say where entries stood.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"

namespace thinwire {

// Replaces ascending positions of supported entries by their ranks.
void ToRanks(const SupportView& support, uint32_t* positions, size_t n);

// The inverse, block by block.
class SupportedPositions {
 public:
  explicit SupportedPositions(const SupportView& support) : support_(support) {}
  // Replaces ranks, which ascend from one call to the next and are below support.count.
  void FromRanks(uint32_t* ranks, size_t n);

 private:
  SupportView support_;
  int64_t word_ = -1;  // where the search stands
  uint64_t left_ = 0;  // bits of that word from `rank_` on
  uint32_t rank_ = 0;  // of the lowest bit of left_
};

}  // namespace thinwire
