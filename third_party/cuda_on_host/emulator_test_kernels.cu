#include "third_party/cuda_on_host/emulator_test_kernels.h"

namespace {

constexpr unsigned kAll = 0xffffffffu;

__constant__ const int kSegment[] = {16};

template <typename... P>
cudaError_t Launch(cudaStream_t stream, int blocks, int threads, void (*kernel)(P...),
                   P... arguments) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  return cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), pointers, 0, stream);
}

__global__ void ReverseKernel(int* values) {
  __shared__ int staged[64];
  int* const mine = values + blockIdx.x * 64 + threadIdx.x;
  staged[threadIdx.x] = *mine;
  __syncthreads();
  *mine = staged[63 - threadIdx.x];
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

__global__ void ExchangeKernel(const int* values, unsigned* results) {
  const int i = threadIdx.x;
  const int value = values[i];
  const int width = kSegment[0];
  results[0 * 64 + i] = __shfl_sync(kAll, value, 5, width);
  results[1 * 64 + i] = __shfl_up_sync(kAll, value, 3, width);
  results[2 * 64 + i] = __shfl_down_sync(kAll, value, 3, width);
  results[3 * 64 + i] = __shfl_xor_sync(kAll, value, 1, width);
  results[4 * 64 + i] = __ballot_sync(kAll, value % 2 == 1);
  results[5 * 64 + i] = __all_sync(kAll, value > 0) != 0;
  results[6 * 64 + i] = static_cast<unsigned>(__reduce_add_sync(kAll, -value));
  results[7 * 64 + i] = static_cast<unsigned>(__reduce_min_sync(kAll, -value));
  results[8 * 64 + i] = static_cast<unsigned>(__reduce_max_sync(kAll, -value));
  __syncwarp();
}

__global__ void FindInBlockKernel(const int* values, int* found) {
  const int value = values[threadIdx.x];
  const int any = __syncthreads_or(value == 7);
  const int none = __syncthreads_or(value == -7);
  if (threadIdx.x != 95) return;
  found[0] = any != 0;
  found[1] = none != 0;
}

__global__ void TotalKernel(const int* values, int n, Totals* totals) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  atomicAdd(&totals->sum, static_cast<unsigned long long>(values[i]));
  atomicMax(&totals->most, values[i]);
  atomicOr(&totals->bits, static_cast<unsigned>(values[i]));
}

__global__ void AddLineKernel(float* values, int n, Pair pair) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    values[i] += static_cast<float>(pair.first * i + pair.second);
  }
}

__global__ void RotateKernel(int* values, int rounds) {
  __shared__ int ring[1024];
  const unsigned i = threadIdx.x;
  ring[i] = values[i];
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    const int next = ring[(i + 1) % 1024];
    __syncthreads();
    ring[i] = next;
    __syncthreads();
  }
  values[i] = ring[i];
}

__global__ void ReverseWithoutBarrierKernel(int* values) {
  __shared__ int staged[64];
  staged[threadIdx.x] = -1;
  __syncthreads();
  staged[threadIdx.x] = values[threadIdx.x];
  values[threadIdx.x] = staged[63 - threadIdx.x];
}

__global__ void TwoBarriersKernel() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void EarlyReturnKernel() {
  if (blockIdx.x == 1 && threadIdx.x == 40) return;
  __syncthreads();
}

__global__ void ShuffleInBranchesKernel(int* value) {
  int sum = 0;
  if (threadIdx.x % 2 == 0) {
    sum = __shfl_xor_sync(kAll, 1, 2);
  } else {
    sum = __shfl_xor_sync(kAll, 2, 2);
  }
  *value = sum;
}

__global__ void ShuffleHalfWarpKernel(int* value) {
  if (threadIdx.x < 16) *value = __shfl_sync(0xffffu, 1, 0);
}

__global__ void StoreKernel(int* values, int64_t i) { values[i] = 1; }

}  // namespace

cudaError_t Reverse(int blocks, int* values, cudaStream_t stream) {
  return Launch(stream, blocks, 64, ReverseKernel, values);
}
cudaError_t SumBlocks(int blocks, const int* values, int* sums, cudaStream_t stream) {
  return Launch(stream, blocks, 256, SumBlocksKernel, values, sums);
}
cudaError_t Exchange(const int* values, unsigned* results, cudaStream_t stream) {
  return Launch(stream, 1, 64, ExchangeKernel, values, results);
}
cudaError_t FindInBlock(const int* values, int* found, cudaStream_t stream) {
  return Launch(stream, 1, 96, FindInBlockKernel, values, found);
}
cudaError_t Total(const int* values, int n, Totals* totals, cudaStream_t stream) {
  return Launch(stream, (n + 127) / 128, 128, TotalKernel, values, n, totals);
}
cudaError_t AddLine(float* values, int n, Pair pair, cudaStream_t stream) {
  return Launch(stream, 2, 32, AddLineKernel, values, n, pair);
}
cudaError_t Rotate(int* values, int rounds, cudaStream_t stream) {
  return Launch(stream, 1, 1024, RotateKernel, values, rounds);
}
cudaError_t ReverseWithoutBarrier(int* values, cudaStream_t stream) {
  return Launch(stream, 1, 64, ReverseWithoutBarrierKernel, values);
}
cudaError_t TwoBarriers(cudaStream_t stream) { return Launch(stream, 1, 64, TwoBarriersKernel); }
cudaError_t EarlyReturn(cudaStream_t stream) { return Launch(stream, 2, 64, EarlyReturnKernel); }
cudaError_t ShuffleInBranches(int* value, cudaStream_t stream) {
  return Launch(stream, 1, 32, ShuffleInBranchesKernel, value);
}
cudaError_t ShuffleHalfWarp(int* value, cudaStream_t stream) {
  return Launch(stream, 1, 32, ShuffleHalfWarpKernel, value);
}
cudaError_t Store(int* values, int64_t i, cudaStream_t stream) {
  return Launch(stream, 1, 32, StoreKernel, values, i);
}
