#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/device_code_test_kernels.h"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"
#include "tensor/cuda/scan.cuh"
#include "tensor/cuda/tensor_cores.cuh"

namespace thinwire {
namespace {

constexpr int kThreads = 128;

__global__ void Convert(const float* from, int64_t n, uint16_t* to, float* wide) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * blockDim.x) {
    Store(from[i], to + i);
    wide[i] = Load(to + i);
  }
}

template <int kN, typename T>
__global__ void Copy(const T* from, int64_t n, T* to) {
  const int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kN;
  if (i >= n) return;
  float x[kN];
  LoadVector(from + i, n - i, x);
  StoreVector(x, n - i, to + i);
}

__global__ void Reduce(const float* values, Reduced* reduced) {
  const float value = values[threadIdx.x];
  Reduced& mine = reduced[threadIdx.x];
  mine.sum = BlockReduce<Sum>(value);
  mine.double_sum = BlockReduce<Sum>(static_cast<double>(value));
  mine.least = BlockReduce<Least>(value);
  mine.greatest = BlockReduce<Greatest>(value);
  mine.long_least = BlockReduce<Least>(static_cast<int64_t>(value * 1e9f));
  mine.int_greatest = BlockReduce<Greatest>(threadIdx.x == 5 ? 0x80000001u : threadIdx.x);
}

__global__ void Scan(const uint32_t* values, Scanned* scanned) {
  const uint32_t value = values[threadIdx.x];
  Scanned& mine = scanned[threadIdx.x];
  mine.before = BlockExclusiveSum(value, &mine.total);
  mine.long_before = BlockExclusiveSum(int64_t{value} << 20, &mine.long_total);
}

struct alignas(16) Square {
  uint16_t of[16][16];
};

__device__ void StoreColumns(const float (&c)[4], int first_column, float* to) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  for (int e = 0; e < 4; ++e) to[(g + e / 2 * 8) * 16 + first_column + 2 * t + e % 2] = c[e];
}

__global__ void Multiply(const uint16_t* a, const uint16_t* b, float* product, float* transposed) {
  __shared__ Square left, right;
  for (int i = threadIdx.x; i < 256; i += 32) {
    left.of[i / 16][i % 16] = a[i];
    right.of[i / 16][i % 16] = b[i];
  }
  __syncthreads();
  const int lane = threadIdx.x;
  uint32_t factor[4], words[4];
  LoadMatrices(&left.of[lane % 16][lane / 16 * 8], factor);
  float c[4][4] = {};
  LoadTransposed(&right.of[lane % 16][lane / 16 * 8], words);
  MultiplyAdd(factor, words[0], words[1], c[0]);
  MultiplyAdd(factor, words[2], words[3], c[1]);
  LoadMatrices(&right.of[lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8], words);
  MultiplyAdd(factor, words[0], words[1], c[2]);
  MultiplyAdd(factor, words[2], words[3], c[3]);
  for (int half = 0; half < 2; ++half) {
    StoreColumns(c[half], 8 * half, product);
    StoreColumns(c[2 + half], 8 * half, transposed);
  }
}

__global__ void NarrowAllTwos(const float* values, int64_t n, uint32_t* words) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) words[i] = NarrowTwo(values[2 * i], values[2 * i + 1]);
}

template <int kN, typename T>
Error LaunchCopy(CudaDevice* device, const T* from, int64_t n, T* to) {
  return Launch(device, BlocksFor(n, kThreads * kN), kThreads, Copy<kN, T>, from, n, to);
}

}  // namespace

Error ConvertAll(CudaDevice* device, const float* from, int64_t n, uint16_t* to, float* wide) {
  return Launch(device, BlocksFor(n, kThreads, /*most=*/8), kThreads, Convert, from, n, to, wide);
}

Error CopyByVectors(CudaDevice* device, int width, const float* from, int64_t n, float* to) {
  return width == 4 ? LaunchCopy<4>(device, from, n, to) : LaunchCopy<8>(device, from, n, to);
}
Error CopyByVectors(CudaDevice* device, int width, const uint16_t* from, int64_t n, uint16_t* to) {
  return width == 4 ? LaunchCopy<4>(device, from, n, to) : LaunchCopy<8>(device, from, n, to);
}

Error ReduceAll(CudaDevice* device, int threads, const float* values, Reduced* reduced) {
  return Launch(device, 1, threads, Reduce, values, reduced);
}

Error ScanAll(CudaDevice* device, int threads, const uint32_t* values, Scanned* scanned) {
  return Launch(device, 1, threads, Scan, values, scanned);
}

Error MultiplyMatrices(CudaDevice* device, const uint16_t* a, const uint16_t* b, float* product,
                       float* transposed) {
  return Launch(device, 1, 32, Multiply, a, b, product, transposed);
}

Error NarrowTwos(CudaDevice* device, const float* values, int64_t n, uint32_t* words) {
  return Launch(device, BlocksFor(n / 2, kThreads), kThreads, NarrowAllTwos, values, n / 2, words);
}

}  // namespace thinwire
