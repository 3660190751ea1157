// A position in a tensor as a rank: how many supported entries lie before it. Both ends know the
// support, so ranks, which are fewer, say where entries stood.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"

namespace thinwire {

// Replaces ascending positions of supported entries by their ranks.
void ToRanks(const SupportView& support, uint32_t* positions, size_t n);

// The inverse, for ranks that ascend.
class SupportedPositions {
 public:
  explicit SupportedPositions(const SupportView& support) : support_(support) {}
  // Replaces ranks, which ascend from one call to the next and are below support.count.
  void FromRanks(uint32_t* ranks, size_t n);

 private:
  void ListNextRun();

  static constexpr int64_t kRun = 4096;  // elements
  static constexpr size_t kSlack = 64;   // for whole vectors
  SupportView support_;
  int64_t next_ = 0;         // the first element that no run has listed
  uint32_t first_rank_ = 0;  // of the positions listed
  uint32_t num_listed_ = 0;
  uint32_t positions_[kRun + kSlack];
};

}  // namespace thinwire
