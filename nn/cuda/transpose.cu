#include "nn/cuda/kernels.h"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

constexpr int kTile = 32;  // rows and columns of a block's tile
constexpr int kStep = kThreads / kTile;

// Transposes y[i][column][row] = x[i][row][column]. Both are accessed along their rows, through a
// tile in shared memory. Its rows are one element longer, so that a column is spread over 32 banks.
template <typename T>
__global__ void TransposeTile(const T* x, T* y, int64_t rows, int64_t columns) {
  __shared__ T tile[kTile][kTile + 1];
  const int64_t across = (columns + kTile - 1) / kTile, down = (rows + kTile - 1) / kTile;
  const int64_t block = blockIdx.x;
  const int64_t base = block / (across * down) * rows * columns;
  const int64_t top = block / across % down * kTile, left = block % across * kTile;
  const int lane = static_cast<int>(threadIdx.x % kTile);
  const int first = static_cast<int>(threadIdx.x / kTile);
  for (int i = first; i < kTile; i += kStep) {
    if (top + i < rows && left + lane < columns) {
      tile[i][lane] = x[base + (top + i) * columns + left + lane];
    }
  }
  __syncthreads();
  for (int i = first; i < kTile; i += kStep) {
    if (left + i < columns && top + lane < rows) {
      y[base + (left + i) * rows + top + lane] = tile[lane][i];
    }
  }
}

// Transposes each of the from.dims[0] matrices of `from`.
Error TransposeEach(CudaDevice* device, const TensorView& from, const TensorView& to, int64_t rows,
                    int64_t columns) {
  const int64_t n = from.elements();
  if (n == 0) return Error{};
  if (rows == 1 || columns == 1) return Convert(device, from, to);
  const int64_t tiles = ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  return WithElements(from.dtype, /*wide=*/false, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    return Launch(device, BlocksWith(1, from.dims[0] * tiles), dim3(kThreads), TransposeTile<T>,
                  static_cast<const T*>(from.data), static_cast<T*>(to.data), rows, columns);
  });
}

}  // namespace

Error Kernels::ToChannelsFirst(const TensorView& x, const TensorView& y) {
  return TransposeEach(device_, x, y, x.dims[1] * x.dims[2], x.dims[3]);
}

Error Kernels::ToChannelsLast(const TensorView& y, const TensorView& x) {
  return TransposeEach(device_, y, x, x.dims[3], x.dims[1] * x.dims[2]);
}

}  // namespace thinwire::cuda
