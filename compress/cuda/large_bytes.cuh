// The bytes of a string from some value on, each with its rank among them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/scan.cuh"

namespace thinwire {

constexpr int kLargeThreads = 256;
constexpr int kLargeEach = 16;  // neighbours of one thread
constexpr int kLargeTile = kLargeThreads * kLargeEach;

// The tile of this block, whose threads all call both functions.
class LargeTile {
 public:
  __device__ LargeTile(const uint8_t* bytes, int64_t n, uint8_t least)
      : bytes_(bytes),
        begin_(int64_t{blockIdx.x} * kLargeTile + int64_t{threadIdx.x} * kLargeEach),
        end_(min(begin_ + kLargeEach, n)),
        least_(least) {
    for (int64_t i = begin_; i < end_; ++i) own_ += bytes_[i] >= least_;
  }

  __device__ uint32_t Count() const { return BlockReduce<Sum>(own_); }

  // Calls visit(i, rank) of each, `before` of which are in the tiles before.
  template <typename Visit>
  __device__ void ForEach(uint64_t before, const Visit& visit) const {
    uint32_t total;
    uint64_t rank = before + BlockExclusiveSum(own_, &total);
    for (int64_t i = begin_; i < end_; ++i) {
      if (bytes_[i] >= least_) visit(i, rank++);
    }
  }

 private:
  const uint8_t* const bytes_;
  const int64_t begin_, end_;
  const uint8_t least_;
  uint32_t own_ = 0;
};

}  // namespace thinwire
