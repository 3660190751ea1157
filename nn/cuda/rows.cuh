// Rows of a matrix, each computed by a warp or, if rows are long, by a block.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/reduce.cuh"

namespace thinwire::cuda {

constexpr int64_t kMostWarpElements = 1024;  // longest row of a warp

inline bool IsLongRow(int64_t elements) { return elements > kMostWarpElements; }

// The place of a thread. kRowWarps, the warps of a row, is 1 (in a block of 256 threads) or all
// warps of the block.
template <int kRowWarps>
struct RowThread {
  static constexpr int64_t kCount = kRowWarps * kWarpThreads;  // threads that share a row
  int64_t row;                                                 // the same for all of them
  int64_t index;                                               // among them

  __device__ RowThread() {
    row = static_cast<int64_t>(blockIdx.x);
    if (kRowWarps == 1) row = row * kWarps + threadIdx.x / kWarpThreads;
    index = threadIdx.x % kCount;
  }
  // Combines the values of the row's threads; all of them call it and get the result.
  template <typename Operation, typename T>
  __device__ T Reduce(T value) const {
    if constexpr (kRowWarps == 1) return WarpReduce<Operation>(value);
    return BlockReduce<Operation>(value);
  }
};

}  // namespace thinwire::cuda
