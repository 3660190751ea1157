// Words of a bitmap, made by warps that look at 1024 elements each, of which a lane has eight times
// four neighbours.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/reduce.cuh"

namespace thinwire {

constexpr int kVectorsOfLane = 8;  // of four elements
constexpr int kElementsOfWarp = 4 * kVectorsOfLane * static_cast<int>(kWarpThreads);

// Returns where the lane's vector begins among the warp's elements.
__device__ inline int VectorBegin(int vector) {
  const int lane = static_cast<int>(threadIdx.x % kWarpThreads);
  return (vector * static_cast<int>(kWarpThreads) + lane) * 4;
}

// Returns which of the warp's 32 words WordOfVotes gives this lane.
__device__ inline int WordOfLane() {
  const int lane = static_cast<int>(threadIdx.x % kWarpThreads);
  return lane % kVectorsOfLane * 4 + lane / kVectorsOfLane;
}

// Returns this lane's word (WordOfLane) of the bitmap. Bit 4 v + k of `votes` is that of element
// VectorBegin(v) + k. The whole warp calls it.
//
// A word holds one vector of each of eight lanes. So eight lanes transpose eight by eight nibbles,
// in steps of halves, quarters and eighths: in each step a lane keeps one half of its nibbles and
// completes it with its partner's.
__device__ inline uint32_t WordOfVotes(uint32_t votes) {
  const unsigned lane = threadIdx.x % kWarpThreads;
  constexpr uint32_t kLow[] = {0x0F0F0F0Fu, 0x00FF00FFu, 0x0000FFFFu};
#pragma unroll
  for (int step = 2; step >= 0; --step) {
    const unsigned distance = 1u << step, shift = 4 * distance;
    const uint32_t low = kLow[step];
    const uint32_t other = __shfl_xor_sync(kWholeWarp, votes, distance);
    votes = (lane & distance) == 0 ? (votes & low) | (other & low) << shift
                                   : (votes & ~low) | (other & ~low) >> shift;
  }
  return votes;
}

}  // namespace thinwire
