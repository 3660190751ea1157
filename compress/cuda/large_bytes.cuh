// Device code that finds the bytes of a string that are at least some value, each with its rank
// among them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/scan.cuh"

namespace thinwire {

constexpr int kLargeThreads = 256;
constexpr int kLargeEach = 16;  // neighbours of one thread
constexpr int kLargeTile = kLargeThreads * kLargeEach;

// Loads sixteen bytes from an address that need not be aligned, four to a word, the first the
// lowest; bytes from the left-th on are zeros. Far from the end it reads five aligned words and
// shifts them together; near the end it reads single bytes.
__device__ inline void LoadSixteen(const uint8_t* bytes, int64_t left, uint32_t (&words)[4]) {
  const auto offset = static_cast<unsigned>(reinterpret_cast<uintptr_t>(bytes) % 4);
  if (left >= kLargeEach + 4) {
    const auto* const from = reinterpret_cast<const uint32_t*>(bytes - offset);
    uint64_t both = from[0];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      both |= uint64_t{from[w + 1]} << 32;
      words[w] = static_cast<uint32_t>(both >> (8 * offset));
      both >>= 32;
    }
    return;
  }
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    words[w] = 0;
    for (int k = 0; k < 4; ++k) {
      if (4 * w + k < left) words[w] |= uint32_t{bytes[4 * w + k]} << (8 * k);
    }
  }
}

// Tile of this block, whose threads all call the constructor and both functions.
class LargeTile {
 public:
  // Loads this thread's bytes and counts the large ones. `least` is not zero.
  __device__ LargeTile(const uint8_t* bytes, int64_t n, uint8_t least)
      : begin_(int64_t{blockIdx.x} * kLargeTile + int64_t{threadIdx.x} * kLargeEach),
        least_(least) {
    LoadSixteen(bytes + begin_, n - begin_, words_);
#pragma unroll
    for (int k = 0; k < kLargeEach; ++k) own_ += ByteAt(k) >= least_;
  }

  __device__ uint32_t Count() const { return BlockReduce<Sum>(own_); }

  // Calls visit(i, rank) for each such byte; `before` of them are in earlier tiles.
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
  __device__ uint32_t ByteAt(int k) const { return words_[k / 4] >> (8 * (k % 4)) & 0xFFu; }

  const int64_t begin_;
  const uint8_t least_;
  uint32_t words_[kLargeEach / 4];
  uint32_t own_ = 0;
};

}  // namespace thinwire
