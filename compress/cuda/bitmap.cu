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

}  // namespace

Error SubmitTileOffsets(cudaStream_t stream, const uint32_t* words, int64_t bits,
                        uint64_t* offsets) {
  const int64_t tiles = NumTiles(bits);
  RETURN_ERROR(Launch(stream, BlocksFor(tiles, kTilesOfBlock), dim3(kTilesOfBlock * kWarpThreads),
                      CountTilesKernel, words, NumWords(bits), tiles, offsets));
  return SubmitPrefixSums(stream, offsets, tiles);
}

}  // namespace thinwire
