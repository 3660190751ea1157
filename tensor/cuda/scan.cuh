// Exclusive prefix sums over a warp or a block, of integers of 32 or 64 bits: they say where each
// thread's part begins when every thread has some elements.
#pragma once

#include <cuda_runtime.h>

#include "tensor/cuda/reduce.cuh"

namespace thinwire {

// Returns the sum of the values of this thread and those before it in its warp. The whole warp
// calls it.
template <typename T>
__device__ inline T WarpInclusiveSum(T value) {
  const unsigned lane = threadIdx.x % kWarpThreads;
#pragma unroll
  for (unsigned distance = 1; distance < kWarpThreads; distance *= 2) {
    const T before = __shfl_up_sync(kWholeWarp, value, distance);
    if (lane >= distance) value += before;
  }
  return value;
}

// Returns the sum of the values of the threads before this one; *total, in every thread, is the sum
// of all. The whole block calls it, and it acts as a __syncthreads().
template <typename T>
__device__ inline T BlockExclusiveSum(T value, T* total) {
  __shared__ T of_warps[kMostWarps];
  const unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
  const unsigned warps = blockDim.x / kWarpThreads;
  const T inclusive = WarpInclusiveSum(value);
  if (lane == kWarpThreads - 1) of_warps[warp] = inclusive;
  __syncthreads();
  const T warp_value = lane < warps ? of_warps[lane] : T{0};
  __syncthreads();  // the next call writes of_warps
  const T warps_inclusive = WarpInclusiveSum(warp_value);
  *total = __shfl_sync(kWholeWarp, warps_inclusive, kWarpThreads - 1);
  const T before = __shfl_sync(kWholeWarp, warps_inclusive, warp == 0 ? 0 : warp - 1);
  return (warp == 0 ? T{0} : before) + inclusive - value;
}

}  // namespace thinwire
