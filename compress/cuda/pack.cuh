// Packing of codes of 1 to 8 bits without gaps (compress/cpu/loops.h), between the threads of a warp
// and words.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/reduce.cuh"

namespace thinwire {

// Packer of one warp, which holds 128 codes of b bits. Each thread has a piece, four neighbouring
// codes in 4 b bits, the first in the lowest. Together they are 4 b words, of which thread w has
// word w. Pack and Unpack are called by whole warps.
class WarpPacker {
 public:
  __device__ explicit WarpPacker(uint32_t bits)
      : bits_(bits),
        lane_(threadIdx.x % kWarpThreads),
        first_(8 * lane_ / bits),
        skipped_((32 * lane_ - 4 * bits * first_) % 32),
        // `bits & (0 - bits)` is the lowest set bit: the largest power of two that divides `bits`.
        pieces_((2 * bits - (bits & (0 - bits)) + 7) / bits) {}

  __device__ bool HasWord() const { return lane_ < 4 * bits_; }
  // Returns the index of this thread's word, given that this thread's piece begins with `element`.
  __device__ int64_t WordIndex(int64_t element) const {
    return (element >> 7) * (4 * static_cast<int64_t>(bits_)) + lane_;
  }

  // Returns this thread's word; unspecified for threads without one.
  __device__ uint32_t Pack(uint32_t piece) const {
    uint32_t word = PieceOf(piece, first_) >> skipped_;
    uint32_t position = 4 * bits_ - skipped_;
    for (uint32_t turn = 1; turn < pieces_; ++turn, position += 4 * bits_) {
      const uint32_t other = PieceOf(piece, first_ + turn);
      if (position < 32) word |= other << position;
    }
    return word;
  }

  // Returns this thread's piece.
  __device__ uint32_t Unpack(uint32_t word) const {
    const uint32_t index = bits_ * lane_ / 8, offset = bits_ * lane_ % 8 * 4;
    const uint32_t low = PieceOf(word, index), high = PieceOf(word, index + 1);
    const uint32_t piece = offset == 0 ? low : (low >> offset) | (high << (32 - offset));
    return bits_ == 8 ? piece : piece & ((1u << (4 * bits_)) - 1);
  }

 private:
  __device__ static uint32_t PieceOf(uint32_t value, uint32_t lane) {
    return __shfl_sync(kWholeWarp, value, static_cast<int>(lane % kWarpThreads));
  }

  uint32_t bits_, lane_;
  uint32_t first_;    // the thread in whose piece this thread's word begins
  uint32_t skipped_;  // bits of that piece that belong to the word before
  uint32_t pieces_;   // most pieces that a word can touch, wherever it begins
};

}  // namespace thinwire
