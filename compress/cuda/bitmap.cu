#include "compress/cuda/bitmap.cuh"
#include "compress/cuda/prefix_sums.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kTilesOfBlock = 8;  // one per warp

// Counts the set bits of each tile, with a warp per tile.
__global__ void CountTilesKernel(const uint32_t* words, int64_t num_words, int64_t tiles,
                                 uint64_t* counts) {
  const unsigned lane = threadIdx.x % kWarpThreads;
  const int64_t tile = int64_t{blockIdx.x} * kTilesOfBlock + threadIdx.x / kWarpThreads;
  if (tile >= tiles) return;  // whole warps
  uint32_t count = 0;
#pragma unroll
  for (unsigned j = lane; j < kTileWords; j += kWarpThreads) {
    const int64_t word = tile * kTileWords + j;
    if (word < num_words) count += __popc(words[word]);
  }
  count = WarpReduce<Sum>(count);
  if (lane == 0) counts[tile] = count;
}

constexpr int kThreads = 256;
constexpr int64_t kRowsOfWarp = 256;

// Counts the set bits of [begin, end), with a warp.
__device__ uint64_t CountRange(const uint32_t* words, int64_t begin, int64_t end) {
  const int64_t last = (end + 31) / 32;
  uint64_t count = 0;
  for (int64_t word = begin / 32 + threadIdx.x % 32; word < last; word += 32) {
    uint32_t bits = words[word];
    // The first word loses its bits below `begin`, the last one those from `end` on.
    if (word * 32 < begin) bits &= ~0u << (begin % 32);
    if (end < word * 32 + 32) bits = BitsBelow(bits, static_cast<unsigned>(end % 32));
    count += __popc(bits);
  }
  return WarpReduce<Sum>(count);
}

// Counts the set bits before i, with a warp.
__device__ uint64_t RankOf(const RankedBits& bits, int64_t i) {
  const int64_t tile = i / kTileBits;
  return bits.offsets[tile] + CountRange(bits.words, tile * kTileBits, i);
}

// Counts contiguous scopes, with a warp per scope.
__global__ void CountContiguousKernel(RankedBits bits, Scopes scopes, uint32_t* counts) {
  const int64_t scope = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
  if (scope >= scopes.count) return;  // whole warps
  const int64_t begin = scope * scopes.elements;
  const int64_t end = min(begin + scopes.elements, scopes.total);
  const uint64_t count = end - begin <= kTileBits ? CountRange(bits.words, begin, end)
                                                  : RankOf(bits, end) - RankOf(bits, begin);
  if (threadIdx.x % 32 == 0) counts[scope] = static_cast<uint32_t>(count);
}

// Counts channels, with a warp per 32 channels and some rows; counts are zero before.
__global__ void CountChannelsKernel(const uint32_t* words, Scopes scopes, int64_t warps_across,
                                    int64_t warps, uint32_t* counts) {
  const int64_t warp = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
  const int64_t channel = warp % warps_across * 32 + threadIdx.x % 32;
  if (warp >= warps || channel >= scopes.count) return;
  const int64_t first = warp / warps_across * kRowsOfWarp;
  const int64_t last = min(first + kRowsOfWarp, scopes.elements);
  uint32_t count = 0;
#pragma unroll 8
  for (int64_t row = first; row < last; ++row) {
    count += IsSet(words, row * scopes.count + channel);
  }
  if (count > 0) atomicAdd(&counts[channel], count);
}

__global__ void MostCheckKernel(const uint32_t* counts, int64_t n, int64_t most, uint32_t* fault) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n && counts[i] > most) *fault = 1;
}

}  // namespace

Error SubmitTileOffsets(CudaDevice* device, const uint32_t* words, int64_t bits,
                        uint64_t* offsets) {
  const int64_t tiles = NumTiles(bits);
  RETURN_ERROR(Launch(device, BlocksFor(tiles, kTilesOfBlock), dim3(kTilesOfBlock * kWarpThreads),
                      CountTilesKernel, words, NumWords(bits), tiles, offsets));
  return SubmitPrefixSums(device, offsets, tiles);
}

Error SubmitScopeCounts(CudaDevice* device, const RankedBits& bits, const Scopes& scopes,
                        uint32_t* counts) {
  if (!scopes.strided) {
    return Launch(device, BlocksFor(scopes.count, kThreads / 32), dim3(kThreads),
                  CountContiguousKernel, bits, scopes, counts);
  }
  const int64_t across = (scopes.count + 31) / 32;
  const int64_t warps = (scopes.elements + kRowsOfWarp - 1) / kRowsOfWarp * across;
  RETURN_ERROR(device->SubmitZeros(counts, 4 * scopes.count));
  return Launch(device, BlocksFor(warps, kThreads / 32), dim3(kThreads), CountChannelsKernel,
                bits.words, scopes, across, warps, counts);
}

Error SubmitMostCheck(CudaDevice* device, const uint32_t* counts, int64_t n, int64_t most,
                      uint32_t* fault) {
  return Launch(device, BlocksFor(n, kThreads), dim3(kThreads), MostCheckKernel, counts, n, most,
                fault);
}

}  // namespace thinwire
