#include "compress/cuda/large_bytes.cuh"
#include "compress/cuda/large_bytes.h"
#include "compress/cuda/pairs.h"
#include "compress/entropy/pairs.h"
#include "compress/entropy/pairs_layout.h"
#include "compress/entropy/rans.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kCodesEach = kLargeEach;  // codes per thread
constexpr int64_t kMostBlocks = 1 << 11;    // of those that count, so that few add their counts

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
  const int64_t stride = kCodesEach * int64_t{gridDim.x} * kThreads;
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

// Splits pairs, which are a stream of codes of four bits, the first in the lowest. A thread writes
// the sixteen codes of four words at an aligned address.
__global__ void FromPairsKernel(const uint8_t* pairs, int64_t n, uint8_t* codes) {
  const auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(codes) % 4);
  const int64_t i = kCodesEach * (int64_t{blockIdx.x} * kThreads + threadIdx.x) - offset;
  if (i < 0 || i + kCodesEach + 16 > n) {  // 16 more codes are in the words read
    for (int64_t j = max(i, int64_t{0}); j < min(i + kCodesEach, n); ++j) {
      codes[j] = pairs[j / 2] >> (j % 2 * 4) & kLargeCode;
    }
    return;
  }
  const auto* const from = reinterpret_cast<const uint32_t*>(pairs) + i / 8;
  const auto shift = static_cast<unsigned>(4 * (i % 8));
  const uint64_t low = from[0] | uint64_t{from[1]} << 32, high = from[1] | uint64_t{from[2]} << 32;
  const uint32_t eights[2] = {static_cast<uint32_t>(low >> shift),
                              static_cast<uint32_t>(high >> shift)};
  auto* const to = reinterpret_cast<uint32_t*>(codes + i);
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    // Spreads four codes of two bytes to a byte each.
    uint32_t four = eights[w / 2] >> (16 * (w % 2)) & 0xFFFFu;
    four = (four | four << 8) & 0x00FF00FFu;
    to[w] = (four | four << 4) & 0x0F0F0F0Fu;
  }
}

// Puts the large codes in their places.
__global__ void PatchKernel(int64_t n, const uint8_t* large, uint64_t num_large,
                            const uint64_t* offsets, uint8_t* codes, uint32_t* fault) {
  const int64_t num_tiles = gridDim.x;
  if (offsets[num_tiles] != num_large) {  // the same in all blocks
    *fault = 1;
    return;
  }
  LargeTile(codes, n, kLargeCode).ForEach(offsets[blockIdx.x], [&](int64_t i, uint64_t rank) {
    codes[i] = large[rank];
    if (large[rank] < kLargeCode) *fault = 1;
  });
}

}  // namespace

Error SubmitLargeLooks(cudaStream_t stream, const uint8_t* codes, int64_t n, uint32_t* large) {
  const auto stride = static_cast<int64_t>(PairLookStride(static_cast<size_t>(n)));
  return Launch(stream, dim3(1), dim3(kThreads), LooksKernel, codes, n, stride, large);
}

Error SubmitToPairs(cudaStream_t stream, const uint8_t* codes, int64_t n, uint8_t* pairs,
                    int64_t size, uint32_t* large) {
  return Launch(stream, BlocksFor(2 * size, kCodesEach * kThreads, kMostBlocks), dim3(kThreads),
                ToPairsKernel, codes, n, pairs, size, large);
}

Error SubmitFromPairs(cudaStream_t stream, const uint8_t* pairs, int64_t n, const uint8_t* large,
                      int64_t num_large, uint64_t* offsets, uint8_t* codes, uint32_t* fault) {
  RETURN_ERROR(Launch(stream, BlocksFor(n + 3, kCodesEach * kThreads), dim3(kThreads),
                      FromPairsKernel, pairs, n, codes));
  RETURN_ERROR(SubmitLargeOffsets(stream, codes, n, kLargeCode, offsets));
  return Launch(stream, BlocksFor(n, kLargeTile), dim3(kLargeThreads), PatchKernel, n, large,
                static_cast<uint64_t>(num_large), offsets, codes, fault);
}

}  // namespace thinwire
