#include "compress/cuda/factors.h"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire {
namespace {

// Threads of a block, which works on a set of columns alone. Each thread has the same elements of
// every column, so that threads meet only for sums.
constexpr int kThreads = 1024;
constexpr int kAtOnce = 4;  // loads of a thread before its stores

constexpr double kVanished = 0x1p-20;
constexpr double kLostMuch = 0.5;

// Subtracts: p -= along q unless `along` is 0. Then returns <next, p>. Doing both in one pass
// halves the reads of p. All loads of a round come before its stores, so that they are under way
// together.
__device__ double TakeAwayAndMultiply(const float* q, double along, const float* next, int64_t n,
                                      float* p) {
  double sum = 0;
  for (int64_t first = threadIdx.x; first < n; first += kAtOnce * kThreads) {
    float of_p[kAtOnce], of_q[kAtOnce], of_next[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = first + j * kThreads;
      of_p[j] = i < n ? p[i] : 0;
      of_q[j] = i < n ? q[i] : 0;
      of_next[j] = i < n ? next[i] : 0;
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = first + j * kThreads;
      if (i >= n) break;
      float value = of_p[j];
      if (along != 0) {
        value =
            static_cast<float>(static_cast<double>(value) - along * static_cast<double>(of_q[j]));
        p[i] = value;
      }
      const float other = next == p ? value : of_next[j];
      sum += static_cast<double>(other) * static_cast<double>(value);
    }
  }
  return BlockReduce<Sum>(sum);
}

// Subtracts from p its components: p -= <q, p> q for each of the `count` columns q. Returns the
// length of p then.
__device__ double TakeAway(const float* columns, int64_t count, int64_t n, float* p) {
  double along = TakeAwayAndMultiply(p, 0, count > 0 ? columns : p, n, p);
  for (int64_t k = 0; k < count; ++k) {
    const float* const q = columns + k * n;
    along = TakeAwayAndMultiply(q, along, k + 1 < count ? q + n : p, n, p);
  }
  return sqrt(along);
}

__global__ void __launch_bounds__(kThreads)
    OrthonormaliseKernel(float* all, int64_t count, int64_t n) {
  float* const columns = all + static_cast<int64_t>(blockIdx.x) * count * n;
  for (int64_t j = 0; j < count; ++j) {
    float* const p = columns + j * n;
    const double before = TakeAway(columns, 0, n, p);
    double left = TakeAway(columns, j, n, p);
    if (left < kLostMuch * before && left > kVanished * before) left = TakeAway(columns, j, n, p);
    const bool vanished = left <= kVanished * before;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) {
      p[i] = vanished ? 0.0f : static_cast<float>(static_cast<double>(p[i]) / left);
    }
  }
}

}  // namespace

Error Orthonormalise(CudaDevice* device, float* p, int64_t matrices, int64_t count, int64_t n) {
  return Launch(device, dim3(static_cast<unsigned>(matrices)), dim3(kThreads), OrthonormaliseKernel,
                p, count, n);
}

}  // namespace thinwire
