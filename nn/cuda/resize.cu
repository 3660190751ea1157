#include "nn/cuda/kernels.h"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

constexpr int kMostBlocks = 1 << 16;  // threads then take further elements

template <typename T>
__global__ void ResizeRows(const T* x, T* y, int64_t from, int64_t to, int64_t n) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (int64_t i = first; i < n; i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t row = i / to, feature = i - row * to;
    y[i] = feature < from ? x[row * from + feature] : T{0};
  }
}

}  // namespace

Error Resize(CudaDevice* device, const TensorView& x, const TensorView& y) {
  const int64_t n = y.elements(), from = x.dims[x.rank - 1], to = y.dims[y.rank - 1];
  return WithElements(x.dtype, /*wide=*/false, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    return Launch(device, BlocksFor(n, kThreads, kMostBlocks), dim3(kThreads), ResizeRows<T>,
                  static_cast<const T*>(x.data), static_cast<T*>(y.data), from, to, n);
  });
}

}  // namespace thinwire::cuda
