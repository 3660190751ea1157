// Tiles of a pass over a tensor: a block takes a tile of 4096 elements, and each of its threads
// four vectors of four. The vectors of a warp lie side by side.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {

constexpr int kTileThreads = 256;
constexpr int kTileVectors = 4;
constexpr int64_t kTileStride = 4 * kTileThreads;  // between a thread's vectors
constexpr int64_t kTile = kTileVectors * kTileStride;

// Returns the first element of this thread's first vector.
__device__ inline int64_t TileBegin(int64_t tile) {
  return tile * kTile + 4 * static_cast<int64_t>(threadIdx.x);
}

// Calls visit(i, v) for each vector v at x[i] of this thread. Every thread of the block makes
// equally many calls: elements from n on read as zeros.
template <typename T, typename Visit>
__device__ inline void VisitTile(int64_t tile, const T* x, int64_t n, const Visit& visit) {
  const int64_t begin = TileBegin(tile);
  float v[kTileVectors][4];
  if (begin + (kTileVectors - 1) * kTileStride + 4 <= n) {
    LoadVectors(x + begin, kTileStride, v);
  } else {
#pragma unroll
    for (int j = 0; j < kTileVectors; ++j) {
      const int64_t i = begin + j * kTileStride;
      LoadVector(x + i, n - i, v[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kTileVectors; ++j) visit(begin + j * kTileStride, v[j]);
}

// Returns how many of the four elements at i are in a tensor of n elements.
__device__ inline int LeftOf(int64_t n, int64_t i) {
  return static_cast<int>(min(max(n - i, int64_t{0}), int64_t{4}));
}

// Launches kernel(arguments...) over n elements, a block per tile.
template <typename... P, typename... A>
Error LaunchTiles(CudaDevice* device, int64_t n, void (*kernel)(P...), A&&... arguments) {
  return Launch(device, BlocksFor(n, kTile), dim3(kTileThreads), kernel,
                std::forward<A>(arguments)...);
}

}  // namespace thinwire
