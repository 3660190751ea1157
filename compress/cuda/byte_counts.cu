#include "compress/cuda/large_bytes.cuh"
#include "compress/cuda/rans.h"
#include "compress/entropy/rans.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBytesOfBlock = 1 << 14, kMostBlocks = 1 << 10;

// Counts bytes. Integer sums are the same in any order. Most bytes have few values, so warps count
// in tables of their own, as far as shared memory has room: then fewer threads wait for each other.
template <int kCounts, int kTables>
__global__ void CountKernel(const uint8_t* bytes, const uint8_t* sums, int64_t n,
                            uint32_t* counts) {
  __shared__ uint32_t tables[kTables][kCounts];
  for (int t = 0; t < kTables; ++t) {
    for (int i = threadIdx.x; i < kCounts; i += kThreads) tables[t][i] = 0;
  }
  __syncthreads();
  uint32_t* const table = tables[threadIdx.x / 32 % kTables];
  const int64_t stride = int64_t{kLargeEach} * gridDim.x * kThreads;
  int64_t i = int64_t{kLargeEach} * (int64_t{blockIdx.x} * kThreads + threadIdx.x);
  for (; i < n; i += stride) {
    uint32_t own[4], of_sums[4] = {};
    LoadSixteen(bytes + i, n - i, own);
    if (sums != nullptr) LoadSixteen(sums + i, n - i, of_sums);
    const int count = static_cast<int>(min(n - i, int64_t{kLargeEach}));
#pragma unroll
    for (int k = 0; k < kLargeEach; ++k) {
      const uint32_t sum = of_sums[k / 4] >> (8 * (k % 4)) & 0xFFu;
      const uint32_t at = sum * kSymbols + (own[k / 4] >> (8 * (k % 4)) & 0xFFu);
      if (k < count) atomicAdd(&table[at], 1u);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kCounts; i += kThreads) {
    uint32_t count = 0;
    for (int t = 0; t < kTables; ++t) count += tables[t][i];
    if (count != 0) atomicAdd(&counts[i], count);
  }
}

}  // namespace

Error SubmitByteCounts(CudaDevice* device, const uint8_t* bytes, const uint8_t* sums, int64_t n,
                       uint32_t* counts) {
  return Launch(
      device, BlocksFor(n, kBytesOfBlock, kMostBlocks), dim3(kThreads),
      sums == nullptr ? CountKernel<kSymbols, kThreads / 32> : CountKernel<kSums * kSymbols, 1>,
      bytes, sums, n, counts);
}

}  // namespace thinwire
