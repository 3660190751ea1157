// Prefix sums over an array by the threads of one block.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/scan.cuh"

namespace thinwire {

constexpr int kPrefixSumRows = 8;
// Neighbours that one warp takes at a time.
constexpr int kPrefixSumsOfWarp = kPrefixSumRows * static_cast<int>(kWarpThreads);

// Computes prefix sums as SubmitPrefixSums does, and returns the sum of all to every thread. The
// whole block calls it; afterwards every thread sees all that it wrote. Lanes take neighbours, a
// warp one row after the other.
__device__ inline uint64_t BlockPrefixSums(uint64_t* sums, int64_t n) {
  constexpr int kRows = kPrefixSumRows;
  const unsigned lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  uint64_t before = 0;
  for (int64_t start = 0; start < n; start += int64_t{kRows} * blockDim.x) {
    const int64_t first = start + static_cast<int64_t>(warp) * kPrefixSumsOfWarp + lane;
    uint64_t values[kRows], of_warp = 0, total;
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const int64_t i = first + j * static_cast<int>(kWarpThreads);
      values[j] = i < n ? sums[i] : 0;
    }
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const uint64_t inclusive = WarpInclusiveSum(values[j]);
      values[j] = of_warp + inclusive - values[j];
      of_warp += __shfl_sync(kWholeWarp, inclusive, kWarpThreads - 1);
    }
    // The last lane alone has a part of the sum, so all lanes get that of the warps before.
    const uint64_t base =
        before + BlockExclusiveSum(lane == kWarpThreads - 1 ? of_warp : 0, &total);
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const int64_t i = first + j * static_cast<int>(kWarpThreads);
      if (i < n) sums[i] = base + values[j];
    }
    before += total;
  }
  if (threadIdx.x == 0) sums[n] = before;
  __syncthreads();
  return before;
}

}  // namespace thinwire
