// The bytes of a string from some value on, each with its rank among them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/scan.cuh"

namespace thinwire {

constexpr int kLargeThreads = 256;
constexpr int kLargeEach = 16;  // neighbours of one thread
constexpr int kLargeTile = kLargeThreads * kLargeEach;

// The tile of this block, whose threads all call the constructor and both functions.
class LargeTile {
 public:
  // `least` is not zero.
  __device__ LargeTile(const uint8_t* bytes, int64_t n, uint8_t least)
      : begin_(int64_t{blockIdx.x} * kLargeTile + int64_t{threadIdx.x} * kLargeEach),
        least_(least) {
    Load(bytes, n);
#pragma unroll
    for (int k = 0; k < kLargeEach; ++k) own_ += ByteAt(k) >= least_;
  }

  __device__ uint32_t Count() const { return BlockReduce<Sum>(own_); }

  // Calls visit(i, rank) of each, `before` of which are in the tiles before.
  template <typename Visit>
  __device__ void ForEach(uint64_t before, const Visit& visit) const {
    uint32_t total;
    uint64_t rank = before + BlockExclusiveSum(own_, &total);
#pragma unroll
    for (int k = 0; k < kLargeEach; ++k) {
      if (ByteAt(k) >= least_) visit(begin_ + k, rank++);
    }
  }

 private:
  // Through shared memory, where neighbouring threads read neighbouring bytes wherever these begin.
  // Bytes behind the last are zeros.
  __device__ void Load(const uint8_t* bytes, int64_t n) {
    __shared__ uint4 tile[kLargeThreads];
    const int64_t first = int64_t{blockIdx.x} * kLargeTile;
    auto* const to = reinterpret_cast<uint8_t*>(tile);
#pragma unroll
    for (int j = 0; j < kLargeEach; ++j) {
      const int i = j * kLargeThreads + static_cast<int>(threadIdx.x);
      to[i] = first + i < n ? bytes[first + i] : 0;
    }
    __syncthreads();
    const uint4 own = tile[threadIdx.x];
    words_[0] = own.x, words_[1] = own.y, words_[2] = own.z, words_[3] = own.w;
  }
  __device__ uint32_t ByteAt(int k) const { return words_[k / 4] >> (8 * (k % 4)) & 0xFFu; }

  const int64_t begin_;
  const uint8_t least_;
  uint32_t words_[kLargeEach / 4];
  uint32_t own_ = 0;
};

}  // namespace thinwire
