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

template <typename T>
__global__ void CopyRows(const T* from, T* to, int64_t from_row, int64_t to_row, int64_t columns,
                         int64_t n) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (int64_t i = first; i < n; i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t row = i / columns, column = i - row * columns;
    to[row * to_row + column] = from[row * from_row + column];
  }
}

}  // namespace

Error Kernels::Resize(const TensorView& x, const TensorView& y) {
  const int64_t n = y.elements(), from = x.dims[x.rank - 1], to = y.dims[y.rank - 1];
  return WithElements(x.dtype, /*wide=*/false, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    return Launch(device_, BlocksFor(n, kThreads, kMostBlocks), dim3(kThreads), ResizeRows<T>,
                  static_cast<const T*>(x.data), static_cast<T*>(y.data), from, to, n);
  });
}

Error Kernels::CopyColumns(const ColumnCopy& a) {
  const int64_t n = a.from.dims[0] * a.columns;
  if (n == 0) return Error{};
  return WithElements(a.from.dtype, /*wide=*/false, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    return Launch(device_, BlocksFor(n, kThreads, kMostBlocks), dim3(kThreads), CopyRows<T>,
                  static_cast<const T*>(a.from.data) + a.from_column,
                  static_cast<T*>(a.to.data) + a.to_column, a.from.dims[1], a.to.dims[1], a.columns,
                  n);
  });
}

}  // namespace thinwire::cuda
