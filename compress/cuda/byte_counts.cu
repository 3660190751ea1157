#include "compress/cpu/rans.h"
#include "compress/cuda/byte_counts.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBytesOfBlock = 1 << 14, kMostBlocks = 1 << 10;

// Sums of whole numbers are the same in any order.
template <int kCounts>
__global__ void CountKernel(const uint8_t* bytes, const uint8_t* sums, int64_t n,
                            uint32_t* counts) {
  __shared__ uint32_t of_block[kCounts];
  for (int i = threadIdx.x; i < kCounts; i += kThreads) of_block[i] = 0;
  __syncthreads();
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += stride) {
    const int sum = sums == nullptr ? 0 : sums[i];
    atomicAdd(&of_block[sum * kSymbols + bytes[i]], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kCounts; i += kThreads) {
    if (of_block[i] != 0) atomicAdd(&counts[i], of_block[i]);
  }
}

}  // namespace

Error SubmitByteCounts(cudaStream_t stream, const uint8_t* bytes, const uint8_t* sums, int64_t n,
                       uint32_t* counts) {
  return Launch(stream, BlocksFor(n, kBytesOfBlock, kMostBlocks), dim3(kThreads),
                sums == nullptr ? CountKernel<kSymbols> : CountKernel<kSums * kSymbols>, bytes,
                sums, n, counts);
}

}  // namespace thinwire
