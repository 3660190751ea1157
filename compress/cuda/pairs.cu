#include "compress/cuda/large_bytes.cuh"
#include "compress/cuda/pairs_frame.h"
#include "compress/cuda/prefix_sums.h"
#include "compress/entropy/pairs.h"
#include "compress/entropy/pairs_layout.h"
#include "compress/entropy/rans.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int kCodesEach = kLargeEach;  // codes per thread
constexpr int64_t kTile = kThreads * kCodesEach;
constexpr int64_t kMostBlocks = 1 << 11;  // of those that count, so that few add their counts

// Counts large codes in the sample, with one block.
__global__ void LooksKernel(const uint8_t* codes, int64_t n, int64_t stride, uint32_t* large) {
  uint32_t own = 0;
  for (int64_t i = threadIdx.x * stride; i < n; i += kThreads * stride) {
    own += codes[i] >= kLargeCode;
  }
  const uint32_t all = BlockReduce<Sum>(own);
  if (threadIdx.x == 0) *large = all;
}

// Replaces codes above kLargeCode by it in a word of four. Counts those of kLargeCode or more.
__device__ inline void ClampLarge(uint32_t* word, uint32_t* counts) {
  static_assert(kLargeCode == 15, "a nibble");
  // Test for four small codes at once. A byte of 15 has its fifth bit set when one is added; larger
  // ones have one of the upper bits. A carry out of 255 may flag its neighbour too, which the slow
  // path sorts out.
  if (((*word & 0xF0F0F0F0u) | ((*word + 0x01010101u) & 0x10101010u)) == 0) return;
  uint32_t clamped = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    const uint32_t code = *word >> shift & 0xFFu;
    if (code >= kLargeCode) atomicAdd(&counts[code], 1u);
    clamped |= min(code, uint32_t{kLargeCode}) << shift;
  }
  *word = clamped;
}

// Makes pairs: eight of sixteen codes at a time. `pairs` is aligned to 8 bytes, `size` a multiple
// of that.
__global__ void ToPairsKernel(const uint8_t* codes, int64_t n, uint8_t* pairs, int64_t size,
                              uint32_t* large) {
  static_assert(kThreads == kSymbols, "a thread has a counter");
  __shared__ uint32_t counts[kSymbols];
  counts[threadIdx.x] = 0;
  __syncthreads();
  const int64_t stride = kTile * gridDim.x;
  int64_t i = kCodesEach * (int64_t{blockIdx.x} * kThreads + threadIdx.x);
  for (; i < 2 * size; i += stride) {
    uint32_t words[4], halves[4];
    LoadSixteen(codes + i, n - i, words);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      ClampLarge(&words[w], counts);
      // The odd codes move into the upper halves of the bytes before them.
      const uint32_t both = words[w] | words[w] >> 4;
      halves[w] = (both & 0xFFu) | (both >> 8 & 0xFF00u);
    }
    uint2 eight;
    eight.x = halves[0] | halves[1] << 16;
    eight.y = halves[2] | halves[3] << 16;
    *reinterpret_cast<uint2*>(pairs + i / 2) = eight;
  }
  __syncthreads();
  const uint32_t count = counts[threadIdx.x];
  if (count != 0) atomicAdd(&large[threadIdx.x], count);
}

// Sixteen codes of a thread's pairs, which are a stream of codes of four bits, the first in the
// lowest. A block has a tile. The codes lie from an aligned address on, so some threads' first or
// last ones are not among the n; these are zeros here.
class SplitPairs {
 public:
  __device__ SplitPairs(const uint8_t* pairs, int64_t n, const uint8_t* codes)
      : begin_(kCodesEach * (int64_t{blockIdx.x} * kThreads + threadIdx.x) -
               static_cast<int64_t>(reinterpret_cast<uintptr_t>(codes) % kCodesEach)),
        n_(n) {
    if (begin_ < 0 || begin_ + kCodesEach + 16 > n) {  // 16 more codes are in the words read
#pragma unroll
      for (int k = 0; k < kCodesEach; ++k) {
        const int64_t j = begin_ + k;
        if (j >= 0 && j < n) Set(k, pairs[j / 2] >> (j % 2 * 4) & kLargeCode);
      }
    } else {
      Load(reinterpret_cast<const uint32_t*>(pairs) + begin_ / 8);
    }
  }

  __device__ bool IsLarge(int k) const { return (words_[k / 4] >> (8 * (k % 4)) & 0xFFu) == 15; }
  __device__ uint32_t CountLarge() const {
    uint32_t count = 0;
#pragma unroll
    for (int k = 0; k < kCodesEach; ++k) count += IsLarge(k);
    return count;
  }
  // Puts a code in the place of code k, which is large.
  __device__ void Replace(int k, uint8_t code) { Set(k, code ^ uint32_t{kLargeCode}); }

  __device__ void Store(uint8_t* codes) const {
    if (begin_ >= 0 && begin_ + kCodesEach <= n_) {
      *reinterpret_cast<uint4*>(codes + begin_) = {words_[0], words_[1], words_[2], words_[3]};
      return;
    }
#pragma unroll
    for (int k = 0; k < kCodesEach; ++k) {
      const int64_t j = begin_ + k;
      if (j >= 0 && j < n_) codes[j] = static_cast<uint8_t>(words_[k / 4] >> (8 * (k % 4)));
    }
  }

 private:
  __device__ void Load(const uint32_t* from) {
    const auto shift = static_cast<unsigned>(4 * (begin_ % 8));
    const uint64_t low = from[0] | uint64_t{from[1]} << 32;
    const uint64_t high = from[1] | uint64_t{from[2]} << 32;
    const uint32_t eights[2] = {static_cast<uint32_t>(low >> shift),
                                static_cast<uint32_t>(high >> shift)};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      // Spreads four codes of two bytes to a byte each.
      uint32_t four = eights[w / 2] >> (16 * (w % 2)) & 0xFFFFu;
      four = (four | four << 8) & 0x00FF00FFu;
      words_[w] = (four | four << 4) & 0x0F0F0F0Fu;
    }
  }
  // Changes the bits of byte k that `bits` has.
  __device__ void Set(int k, uint32_t bits) { words_[k / 4] ^= bits << (8 * (k % 4)); }

  const int64_t begin_, n_;
  uint32_t words_[4] = {};
};

__global__ void CountLargeKernel(const uint8_t* pairs, int64_t n, const uint8_t* codes,
                                 uint64_t* counts) {
  const uint32_t count = BlockReduce<Sum>(SplitPairs(pairs, n, codes).CountLarge());
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// Splits pairs and puts the large codes in their places. `offsets` has the number of them before
// each tile, and that of all.
__global__ void FromPairsKernel(const uint8_t* pairs, int64_t n, const uint8_t* large,
                                uint64_t num_large, const uint64_t* offsets, uint8_t* codes,
                                uint32_t* fault) {
  if (offsets[gridDim.x] != num_large) {  // the same in all blocks
    *fault = 1;
    return;
  }
  SplitPairs split(pairs, n, codes);
  uint32_t total;
  uint64_t rank = offsets[blockIdx.x] + BlockExclusiveSum(split.CountLarge(), &total);
#pragma unroll
  for (int k = 0; k < kCodesEach; ++k) {
    if (!split.IsLarge(k)) continue;
    const uint8_t code = large[rank++];
    if (code < kLargeCode) *fault = 1;
    split.Replace(k, code);
  }
  split.Store(codes);
}

// Returns the tiles of n codes from any address on.
int64_t NumPairTiles(int64_t n) { return (n + kCodesEach - 1 + kTile - 1) / kTile; }

}  // namespace

Error SubmitLargeLooks(CudaDevice* device, const uint8_t* codes, int64_t n, uint32_t* large) {
  const auto stride = static_cast<int64_t>(PairLookStride(static_cast<size_t>(n)));
  return Launch(device, dim3(1), dim3(kThreads), LooksKernel, codes, n, stride, large);
}

Error SubmitToPairs(CudaDevice* device, const uint8_t* codes, int64_t n, uint8_t* pairs,
                    int64_t size, uint32_t* large) {
  return Launch(device, BlocksFor(2 * size, kTile, kMostBlocks), dim3(kThreads), ToPairsKernel,
                codes, n, pairs, size, large);
}

size_t PairOffsetsBytes(int64_t n) { return sizeof(uint64_t) * (NumPairTiles(n) + 1); }

Error SubmitFromPairs(CudaDevice* device, const uint8_t* pairs, int64_t n, const uint8_t* large,
                      int64_t num_large, uint64_t* offsets, uint8_t* codes, uint32_t* fault) {
  const int64_t tiles = NumPairTiles(n);
  RETURN_ERROR(Launch(device, BlocksFor(tiles, 1), dim3(kThreads), CountLargeKernel, pairs, n,
                      codes, offsets));
  RETURN_ERROR(SubmitPrefixSums(device, offsets, tiles));
  return Launch(device, BlocksFor(tiles, 1), dim3(kThreads), FromPairsKernel, pairs, n, large,
                static_cast<uint64_t>(num_large), offsets, codes, fault);
}

}  // namespace thinwire
