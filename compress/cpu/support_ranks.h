// A position in a tensor as a rank: how many supported entries lie before it. Both ends know the
// support, so ranks, which are fewer, say where entries stood.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/set_bits.h"
#include "compress/kernels.h"

namespace thinwire {

// Replaces ascending positions of supported entries by their ranks.
void ToRanks(const SupportView& support, uint32_t* positions, size_t n);

// The inverse, for ranks that ascend.
class SupportedPositions {
 public:
  explicit SupportedPositions(const SupportView& support);
  // Replaces ranks, which ascend from one call to the next and are below support.count.
  void FromRanks(uint32_t* ranks, size_t n);

 private:
  SetBits bits_;
  uint32_t rank_ = 0;  // of the next bit
};

}  // namespace thinwire
