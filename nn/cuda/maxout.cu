#include "nn/cuda/kernels.h"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// Returns the first maximum of `group` values. NaN wins, as in PyTorch.
template <typename T>
__device__ inline int64_t FirstGreatest(const T* x, int64_t group) {
  int64_t winner = 0;
  float best = Load(x);
  for (int64_t i = 1; i < group; ++i) {
    const float v = Load(x + i);
    if (v > best || (v != v && best == best)) {
      winner = i;
      best = v;
    }
  }
  return winner;
}

constexpr int kMostBlocks = 1 << 16;  // threads then take further elements

__device__ inline int64_t FirstElement() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ inline int64_t Step() { return static_cast<int64_t>(gridDim.x) * kThreads; }

template <typename T>
__global__ void GreatestOfGroup(const T* x, T* y, int64_t group, int64_t n) {
  for (int64_t i = FirstElement(); i < n; i += Step()) {
    const T* const values = x + i * group;
    y[i] = values[FirstGreatest(values, group)];
  }
}

// Each thread computes an element of dx. Neighbours read the same group, which is in the cache.
template <typename T>
__global__ void GradientOfGroup(const T* x, const T* dy, T* dx, int64_t group, int64_t n) {
  for (int64_t j = FirstElement(); j < n * group; j += Step()) {
    const int64_t i = j / group;
    dx[j] = FirstGreatest(x + i * group, group) == j - i * group ? dy[i] : T{0};
  }
}

}  // namespace

Error Kernels::Maxout(int64_t group, const TensorView& x, const TensorView& y) {
  const int64_t n = y.elements();
  return WithElements(x.dtype, /*wide=*/false, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    return Launch(device_, BlocksFor(n, kThreads, kMostBlocks), dim3(kThreads), GreatestOfGroup<T>,
                  static_cast<const T*>(x.data), static_cast<T*>(y.data), group, n);
  });
}

Error Kernels::MaxoutBackward(int64_t group, const TensorView& x, const TensorView& dy,
                              const TensorView& dx) {
  const int64_t n = dy.elements();
  return WithElements(x.dtype, /*wide=*/false, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    return Launch(device_, BlocksFor(n * group, kThreads, kMostBlocks), dim3(kThreads),
                  GradientOfGroup<T>, static_cast<const T*>(x.data), static_cast<const T*>(dy.data),
                  static_cast<T*>(dx.data), group, n);
  });
}

}  // namespace thinwire::cuda
