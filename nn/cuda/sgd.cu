#include <algorithm>

#include "nn/cuda/sgd.h"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

constexpr int64_t kBlockElements = 4096;  // of one parameter, updated by one block
constexpr int kMostParameters = 96;       // of one launch

// Kernels take at most 4 KiB of arguments.
struct Parameters {
  float* value[kMostParameters];
  float* gradient[kMostParameters];
  float* velocity[kMostParameters];
  int64_t n[kMostParameters];
  int64_t first_block[kMostParameters];
  int count;
  float lr, momentum, weight_decay, gradient_scale;
  bool nesterov;
};
static_assert(sizeof(Parameters) <= 4096, "does not fit a launch");

// Multiplications and additions are rounded one by one, as on the CPU.
template <int kN>
__device__ inline void Update(const Parameters& a, int parameter, int64_t at) {
  float p[kN], g[kN], v[kN];
  float* const velocity = a.velocity[parameter];
  LoadAligned(a.value[parameter] + at, p);
  LoadAligned(a.gradient[parameter] + at, g);
  if (velocity != nullptr) LoadAligned(velocity + at, v);
  const float cleared[kN] = {};
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    g[i] = a.gradient_scale * g[i] + a.weight_decay * p[i];
    if (velocity != nullptr) {
      v[i] = a.momentum * v[i] + g[i];
      g[i] = a.nesterov ? g[i] + a.momentum * v[i] : v[i];
    }
    p[i] -= a.lr * g[i];
  }
  if (velocity != nullptr) StoreAligned(v, velocity + at);
  StoreAligned(p, a.value[parameter] + at);
  StoreAligned(cleared, a.gradient[parameter] + at);
}

__device__ inline bool IsAligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// The last parameter whose first block is not behind `block`.
__device__ inline int ParameterOf(const Parameters& a, int64_t block) {
  int low = 0, high = a.count;  // the answer is in [low, high)
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (a.first_block[middle] <= block) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

__global__ void UpdateAll(Parameters a) {
  const int parameter = ParameterOf(a, blockIdx.x);
  const int64_t begin =
      (static_cast<int64_t>(blockIdx.x) - a.first_block[parameter]) * kBlockElements;
  const int64_t left = a.n[parameter] - begin;
  const int64_t end = begin + (left < kBlockElements ? left : kBlockElements);
  int64_t scalars = begin;  // from here on one by one
  if (IsAligned(a.value[parameter]) && IsAligned(a.gradient[parameter]) &&
      IsAligned(a.velocity[parameter])) {
    scalars = end - (end - begin) % 4;
    for (int64_t at = begin + int64_t{4} * threadIdx.x; at < scalars; at += 4 * kThreads) {
      Update<4>(a, parameter, at);
    }
  }
  for (int64_t at = scalars + threadIdx.x; at < end; at += kThreads) Update<1>(a, parameter, at);
}

}  // namespace

Error Sgd(CudaDevice* device, const SgdUpdate& arguments) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  for (int64_t begin = 0; begin < arguments.count; begin += kMostParameters) {
    Parameters a{};
    a.count = static_cast<int>(std::min<int64_t>(arguments.count - begin, kMostParameters));
    a.lr = arguments.lr;
    a.momentum = arguments.momentum;
    a.weight_decay = arguments.weight_decay;
    a.gradient_scale = arguments.gradient_scale;
    a.nesterov = arguments.nesterov;
    int64_t blocks = 0;
    for (int i = 0; i < a.count; ++i) {
      const SgdParameter& parameter = arguments.parameters[begin + i];
      a.value[i] = parameter.value;
      a.gradient[i] = parameter.gradient;
      a.velocity[i] = parameter.velocity;
      a.n[i] = parameter.n;
      a.first_block[i] = blocks;
      blocks += (parameter.n + kBlockElements - 1) / kBlockElements;
    }
    RETURN_ERROR(Launch(stream, dim3(static_cast<unsigned>(blocks)), dim3(kThreads), UpdateAll, a));
  }
  return Error{};
}

}  // namespace thinwire::cuda
