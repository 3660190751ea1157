#include "third_party/cuda_on_host/emulator_test_kernels.h"

namespace {

constexpr unsigned kAll = 0xffffffffu;

__global__ void ReverseKernel(int* values) {
  __shared__ int staged[64];
  staged[threadIdx.x] = values[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  values[blockIdx.x * 64 + threadIdx.x] = staged[63 - threadIdx.x];
}

__global__ void SumBlocksKernel(const int* values, int* sums) {
  __shared__ int of_warp[8];
  int sum = values[blockIdx.x * 256 + threadIdx.x];
#pragma unroll
  for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(kAll, sum, delta);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    int total = 0;
    for (int warp = 0; warp < 8; ++warp) total += of_warp[warp];
    sums[blockIdx.x] = total;
  }
}

}  // namespace

cudaError_t Reverse(dim3 grid, int* values, cudaStream_t stream) {
  void* arguments[] = {&values};
  return cudaLaunchKernel(ReverseKernel, grid, dim3(64), arguments, 0, stream);
}

cudaError_t SumBlocks(dim3 grid, const int* values, int* sums, cudaStream_t stream) {
  void* arguments[] = {&values, &sums};
  return cudaLaunchKernel(SumBlocksKernel, grid, dim3(256), arguments, 0, stream);
}
