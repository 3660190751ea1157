#include <type_traits>

#include "compress/cuda/keys.cuh"
#include "compress/cuda/mark.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kAtOnce = 8;  // loads of a thread at a time

// Marks elements, a block per tile. Lanes hold neighbours, so that each vote of a warp is a word.
template <typename K>
__global__ void MarkKernel(K keys, LeastMarked least, uint32_t* marks, uint64_t* count,
                           uint32_t* nonfinite) {
  const unsigned lane = threadIdx.x % kWarpThreads;
  const int64_t own_word = int64_t{blockIdx.x} * kTileWords + threadIdx.x;
  const int64_t first = own_word - lane;
  const uint32_t least_bits = least.in_memory != nullptr ? *least.in_memory : least.bits;
  uint32_t own = 0, largest = 0;
  for (int word = 0; word < 32; word += kAtOnce) {
    uint32_t magnitudes[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = (first + word + j) * 32 + lane;
      magnitudes[j] = i < keys.total ? keys.Magnitude(i) : 0;
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      // A vote has bit i set if lane i's condition holds: a word of 32 neighbours.
      const uint32_t votes = __ballot_sync(kWholeWarp, magnitudes[j] >= least_bits);
      if (static_cast<int>(lane) == word + j) own = votes;
      largest = max(largest, magnitudes[j]);
    }
  }
  if (own_word < NumWords(keys.total)) marks[own_word] = own;
  if (nonfinite != nullptr && largest >= kNonFiniteMagnitude) atomicOr(nonfinite, 1u);
  if (count == nullptr) return;
  const uint32_t sum = BlockReduce<Sum>(static_cast<uint32_t>(__popc(own)));
  if (threadIdx.x == 0 && sum > 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(count), static_cast<unsigned long long>(sum));
  }
}

// Raises *largest, with one atomic operation per block.
template <typename K>
__global__ void LargestKernel(K keys, uint32_t* largest) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  uint32_t own = 0;
  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + (kAtOnce - 1) * step < keys.total; i += kAtOnce * step) {
    uint32_t magnitudes[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) magnitudes[j] = keys.Magnitude(i + j * step);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) own = max(own, magnitudes[j]);
  }
  for (; i < keys.total; i += step) own = max(own, keys.Magnitude(i));
  own = BlockReduce<Greatest>(own);
  if (threadIdx.x == 0 && own > 0) atomicMax(largest, own);
}

}  // namespace

Error SubmitMark(CudaDevice* device, const Keys& keys, const LeastMarked& least, uint32_t* marks,
                 uint64_t* count, uint32_t* nonfinite) {
  return WithKeysInMemory(keys, [&](const auto& typed) {
    using K = std::decay_t<decltype(typed)>;
    return Launch(device, BlocksFor(NumTiles(keys.total), 1), dim3(kTileWords), MarkKernel<K>,
                  typed, least, marks, count, nonfinite);
  });
}

Error SubmitLargestMagnitude(CudaDevice* device, const Keys& keys, uint32_t* largest) {
  const dim3 blocks = BlocksFor(keys.total, 256 * kAtOnce, 8 * device->multiprocessors());
  return WithKeysInMemory(keys, [&](const auto& typed) {
    using K = std::decay_t<decltype(typed)>;
    return Launch(device, blocks, dim3(256), LargestKernel<K>, typed, largest);
  });
}

}  // namespace thinwire
