// Device functions with which the threads of a block go through a tile of a bitmap (bitmap.h).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/bitmap.h"
#include "tensor/cuda/scan.cuh"

namespace thinwire {

__device__ inline bool IsSet(const uint32_t* words, int64_t i) {
  return (words[i / 32] >> (i % 32)) & 1;
}

// Returns the bits of `word` below bit `lane`: one less than that bit has all lower ones set.
__device__ inline uint32_t BitsBelow(uint32_t word, unsigned lane) {
  return word & ((1u << lane) - 1);
}

// Returns 32 bits from bit `begin` on, of which those before `end` are valid.
__device__ inline uint32_t BitsFrom(const uint32_t* words, int64_t begin, int64_t end) {
  const int64_t word = begin / 32;
  const int shift = static_cast<int>(begin % 32);
  const uint32_t low = words[word] >> shift;
  if (shift == 0 || (word + 1) * 32 >= end) return low;
  return low | words[word + 1] << (32 - shift);
}

// Stores word `word` of a bitmap of zeros, or what of it belongs to [begin, end). Words at the ends
// may be shared with threads that do the same, so these are stored by an atomic operation. `bits`
// has no bits set outside of [begin, end).
__device__ inline void StoreWordOf(int64_t begin, int64_t end, uint32_t bits, int64_t word,
                                   uint32_t* words) {
  if (word * 32 >= end) return;
  if (word * 32 >= begin && word * 32 + 32 <= end) {
    words[word] = bits;
  } else {
    atomicOr(&words[word], bits);
  }
}

// Word of a bitmap, and its rank.
struct TileWord {
  uint32_t bits;
  uint64_t before;  // number of set bits in all words before it
};

// Returns this thread's word of the block's tile. The whole block, of kTileWords threads, calls it.
__device__ inline TileWord LoadTileWord(const uint32_t* words, int64_t num_words,
                                        const uint64_t* offsets) {
  const int64_t word = int64_t{blockIdx.x} * kTileWords + threadIdx.x;
  const uint32_t bits = word < num_words ? words[word] : 0;
  uint32_t total;
  const uint32_t before = BlockExclusiveSum(static_cast<uint32_t>(__popc(bits)), &total);
  return {bits, offsets[blockIdx.x] + before};
}

// Calls visit(i, is_set, rank, load(i, is_set, rank)) for elements i < n, where rank is the number
// of set bits before i. For each word of its warp, a lane visits one element. Several loads precede
// the first of their visits, which may store. Whole warps call it; load and visit may diverge
// within one.
template <typename LoadOne, typename Visit>
__device__ inline void VisitWords(const TileWord& own, int64_t n, LoadOne load, Visit visit) {
  constexpr int kAtOnce = 8;
  const unsigned lane = threadIdx.x % kWarpThreads;
  const int64_t first = int64_t{blockIdx.x} * kTileWords + threadIdx.x - lane;
  for (int word = 0; word < static_cast<int>(kWarpThreads); word += kAtOnce) {
    decltype(load(n, false, own.before)) values[kAtOnce];
    bool is_set[kAtOnce];
    uint64_t ranks[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const uint32_t bits = __shfl_sync(kWholeWarp, own.bits, word + j);
      const uint64_t before = __shfl_sync(kWholeWarp, own.before, word + j);
      const int64_t i = (first + word + j) * 32 + lane;
      is_set[j] = ((bits >> lane) & 1) != 0;
      ranks[j] = before + __popc(BitsBelow(bits, lane));
      if (i < n) values[j] = load(i, is_set[j], ranks[j]);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = (first + word + j) * 32 + lane;
      if (i < n) visit(i, is_set[j], ranks[j], values[j]);
    }
  }
}

}  // namespace thinwire
