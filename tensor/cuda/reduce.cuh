// Sums and extremes over a warp or a block. The block's size fixes the order of operations,
// so equal inputs give equal bits.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace thinwire {

constexpr unsigned kWholeWarp = 0xFFFFFFFFu;
constexpr unsigned kWarpThreads = 32;
constexpr unsigned kMostWarps = 32;  // in a block

// Operations on float, double and integers of 32 or 64 bits. Least and Greatest of a NaN and a
// number give either one, so look for NaN separately.
struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Least {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Greatest {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

template <typename Operation>
constexpr bool kHasInstruction =
    std::is_same_v<Operation, Sum> || std::is_same_v<Operation, Least> ||
    std::is_same_v<Operation, Greatest>;

// Combines integers of 32 bits of all lanes, by one instruction.
template <typename T>
__device__ inline T WarpReduceOf(Sum, T value) {
  return __reduce_add_sync(kWholeWarp, value);
}
template <typename T>
__device__ inline T WarpReduceOf(Least, T value) {
  return __reduce_min_sync(kWholeWarp, value);
}
template <typename T>
__device__ inline T WarpReduceOf(Greatest, T value) {
  return __reduce_max_sync(kWholeWarp, value);
}

// Combines the warp's first `count` (1 to 32) values; every thread of the warp calls it and gets
// the result. It is a tree: value i takes value i + 16, then i + 8, ...
template <typename Operation, typename T>
__device__ inline T WarpReduce(T value, unsigned count = kWarpThreads) {
  const Operation operation;
  const unsigned lane = threadIdx.x % kWarpThreads;
  if constexpr (std::is_integral_v<T> && sizeof(T) == 4 && kHasInstruction<Operation>) {
    if (count == kWarpThreads) return WarpReduceOf(operation, value);
  }
#pragma unroll
  for (unsigned distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    const T other = __shfl_down_sync(kWholeWarp, value, distance);
    if (lane + distance < count) value = operation(value, other);
  }
  return __shfl_sync(kWholeWarp, value, 0);
}

// Combines the block's values; every thread of the block calls it and gets the result. It also acts
// as a __syncthreads().
template <typename Operation, typename T>
__device__ inline T BlockReduce(T value) {
  __shared__ T of_warps[kMostWarps];
  const unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
  const unsigned warps = blockDim.x / kWarpThreads;
  value = WarpReduce<Operation>(value);
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  value = of_warps[lane < warps ? lane : 0];
  __syncthreads();  // the next call writes of_warps
  return WarpReduce<Operation>(value, warps);
}

}  // namespace thinwire
