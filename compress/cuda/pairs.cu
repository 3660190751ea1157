#include "compress/cpu/pairs.h"
#include "compress/cuda/large_bytes.cuh"
#include "compress/cuda/large_bytes.h"
#include "compress/cuda/pairs.h"
#include "compress/pairs_layout.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;

// One block.
__global__ void LooksKernel(const uint8_t* codes, int64_t n, int64_t stride, uint32_t* large) {
  uint32_t own = 0;
  for (int64_t i = threadIdx.x * stride; i < n; i += kThreads * stride) {
    own += codes[i] >= kLargeCode;
  }
  const uint32_t all = BlockReduce<Sum>(own);
  if (threadIdx.x == 0) *large = all;
}

__global__ void ToPairsKernel(const uint8_t* codes, int64_t n, uint8_t* pairs, int64_t size) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= size) return;
  const auto small_at = [&](int64_t j) { return j < n ? min(int{codes[j]}, int{kLargeCode}) : 0; };
  pairs[i] = static_cast<uint8_t>(small_at(2 * i) | small_at(2 * i + 1) << 4);
}

__global__ void FromPairsKernel(const uint8_t* pairs, int64_t n, uint8_t* codes) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) codes[i] = pairs[i / 2] >> (i % 2 * 4) & kLargeCode;
}

// Puts the large ones in their places.
__global__ void PatchKernel(int64_t n, const uint8_t* large, uint64_t num_large,
                            const uint64_t* offsets, uint8_t* codes, uint32_t* fault) {
  const int64_t num_tiles = gridDim.x;
  if (offsets[num_tiles] != num_large) {  // in all blocks alike
    *fault = 1;
    return;
  }
  LargeTile(codes, n, kLargeCode).ForEach(offsets[blockIdx.x], [&](int64_t i, uint64_t rank) {
    codes[i] = large[rank];
    if (large[rank] < kLargeCode) *fault = 1;
  });
}

}  // namespace

Error SubmitLargeLooks(cudaStream_t stream, const uint8_t* codes, int64_t n, uint32_t* large) {
  const auto stride = static_cast<int64_t>(PairLookStride(static_cast<size_t>(n)));
  return Launch(stream, dim3(1), dim3(kThreads), LooksKernel, codes, n, stride, large);
}

Error SubmitToPairs(cudaStream_t stream, const uint8_t* codes, int64_t n, uint8_t* pairs,
                    int64_t size) {
  return Launch(stream, BlocksFor(size, kThreads), dim3(kThreads), ToPairsKernel, codes, n, pairs,
                size);
}

Error SubmitFromPairs(cudaStream_t stream, const uint8_t* pairs, int64_t n, const uint8_t* large,
                      int64_t num_large, uint64_t* offsets, uint8_t* codes, uint32_t* fault) {
  RETURN_ERROR(
      Launch(stream, BlocksFor(n, kThreads), dim3(kThreads), FromPairsKernel, pairs, n, codes));
  RETURN_ERROR(SubmitLargeOffsets(stream, codes, n, kLargeCode, offsets));
  return Launch(stream, BlocksFor(n, kLargeTile), dim3(kLargeThreads), PatchKernel, n, large,
                static_cast<uint64_t>(num_large), offsets, codes, fault);
}

}  // namespace thinwire
