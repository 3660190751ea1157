#include "nn/cuda/kernels.h"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

constexpr int kMostBlocks = 1 << 16;  // threads then take further elements

// Calls use(i) for the elements below n that are this thread's.
template <typename Use>
__device__ inline void ForEachElement(int64_t n, const Use& use) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (int64_t i = first; i < n; i += static_cast<int64_t>(gridDim.x) * kThreads) use(i);
}

// `of_sample` is the number of a sample's elements behind the row.
template <typename T>
__global__ void PrependRow(const float* row, const T* x, T* y, int64_t features, int64_t of_sample,
                           int64_t n) {
  ForEachElement(n, [&](int64_t i) {
    const int64_t sample = i / (features + of_sample), at = i % (features + of_sample);
    if (at < features) {
      Store(row[at], y + i);
    } else {
      y[i] = x[sample * of_sample + at - features];
    }
  });
}

template <typename T>
__global__ void DropRow(const T* dy, T* dx, int64_t features, int64_t of_sample, int64_t n) {
  ForEachElement(n, [&](int64_t i) { dx[i] = dy[i + (i / of_sample + 1) * features]; });
}

// Each thread has a feature and adds up all samples.
template <typename T>
__global__ void AddRows(const T* dy, float* drow, int64_t features, int64_t of_sample,
                        int64_t samples) {
  ForEachElement(features, [&](int64_t i) {
    float sum = drow[i];
    for (int64_t sample = 0; sample < samples; ++sample) {
      sum += Load(dy + sample * (features + of_sample) + i);
    }
    drow[i] = sum;
  });
}

}  // namespace

Error Kernels::Prepend(const float* row, const TensorView& x, const TensorView& y) {
  const int64_t features = x.dims[2], of_sample = x.dims[1] * features, n = y.elements();
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  return WithElements(x.dtype, /*wide=*/false, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    return Launch(stream, BlocksFor(n, kThreads, kMostBlocks), dim3(kThreads), PrependRow<T>, row,
                  static_cast<const T*>(x.data), static_cast<T*>(y.data), features, of_sample, n);
  });
}

Error Kernels::PrependBackward(const TensorView& dy, const TensorView& dx, float* drow) {
  const int64_t features = dx.dims[2], of_sample = dx.dims[1] * features, n = dx.elements();
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  return WithElements(dy.dtype, /*wide=*/false, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    const auto* const from = static_cast<const T*>(dy.data);
    RETURN_ERROR(Launch(stream, BlocksFor(n, kThreads, kMostBlocks), dim3(kThreads), DropRow<T>,
                        from, static_cast<T*>(dx.data), features, of_sample, n));
    if (drow == nullptr) return Error{};
    return Launch(stream, BlocksFor(features, kThreads, kMostBlocks), dim3(kThreads), AddRows<T>,
                  from, drow, features, of_sample, dx.dims[0]);
  });
}

}  // namespace thinwire::cuda
