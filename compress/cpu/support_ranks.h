// Ranks of positions in a tensor: the rank is the number of supported entries before a position.
// Both ends know the support, so ranks, which are smaller numbers, say where entries stood.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/set_bits.h"
#include "compress/kernels.h"

namespace thinwire {

// Replaces ascending positions of supported entries by their ranks.
void ToRanks(const SupportView& support, uint32_t* positions, size_t n);

// Inverse of ToRanks, for ascending ranks.
class SupportedPositions {
 public:
  explicit SupportedPositions(const SupportView& support);
  // Replaces ranks by positions. Ranks ascend, also from one call to the next, and are below
  // support.count.
  void FromRanks(uint32_t* ranks, size_t n);

 private:
  SetBits bits_;
  uint32_t rank_ = 0;  // rank of the next bit
};

}  // namespace thinwire
