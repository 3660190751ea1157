// Prefix sums over an array by the threads of one block.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/scan.cuh"

namespace thinwire {

// See SubmitPrefixSums; returns the sum of all to every thread. The whole block calls it, and all
// it wrote is there for all of it afterwards.
__device__ inline uint64_t BlockPrefixSums(uint64_t* sums, int64_t n) {
  constexpr int kEach = 8;  // neighbours of one thread
  uint64_t before = 0;
  for (int64_t start = 0; start < n; start += int64_t{kEach} * blockDim.x) {
    const int64_t first = start + int64_t{kEach} * threadIdx.x;
    uint64_t values[kEach], sum = 0, total;
    for (int j = 0; j < kEach; ++j) {
      values[j] = first + j < n ? sums[first + j] : 0;
      sum += values[j];
    }
    uint64_t next = before + BlockExclusiveSum(sum, &total);
    for (int j = 0; j < kEach && first + j < n; ++j) {
      sums[first + j] = next;
      next += values[j];
    }
    before += total;
  }
  if (threadIdx.x == 0) sums[n] = before;
  __syncthreads();
  return before;
}

}  // namespace thinwire
