#include "compress/cuda/kernels.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr unsigned kThreads = 256;
// Tile of a thread: kRows rows of kColumns columns.
constexpr int kRows = 4, kColumns = 4;

struct Extents {
  int64_t rows, k, n;
};

// Computes a tile of the product per thread, with its sums in registers: an entry of the factor is
// loaded once for kRows rows. Rows behind the last repeat it.
template <typename X, typename Out>
__global__ void MultiplyKernel(const X* x, const float* factor, Extents extents, Out* out) {
  const int64_t column_tiles = (extents.n + kColumns - 1) / kColumns;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t row = i / column_tiles * kRows;
  if (row >= extents.rows) return;
  const int64_t c = i % column_tiles * kColumns, left = extents.n - c;
  float sums[kRows][kColumns] = {};
  for (int64_t j = 0; j < extents.k; ++j) {
    float of_factor[kColumns];
    LoadVector<kColumns>(factor + j * extents.n + c, left, of_factor);
    for (int r = 0; r < kRows; ++r) {
      const int64_t of_row = row + r < extents.rows ? row + r : extents.rows - 1;
      const float value = Load(x + of_row * extents.k + j);
      for (int v = 0; v < kColumns; ++v) sums[r][v] += value * of_factor[v];
    }
  }
  for (int r = 0; r < kRows && row + r < extents.rows; ++r) {
    StoreVector<kColumns>(sums[r], left, out + (row + r) * extents.n + c);
  }
}

template <typename X, typename Out>
Error LaunchMultiply(CudaDevice* device, const X* x, const float* factor, const Extents& extents,
                     Out* out) {
  const int64_t tiles =
      ((extents.rows + kRows - 1) / kRows) * ((extents.n + kColumns - 1) / kColumns);
  return Launch(device, BlocksFor(tiles, kThreads), dim3(kThreads), MultiplyKernel<X, Out>, x,
                factor, extents, out);
}

}  // namespace

Error CudaKernels::Multiply(const TensorView& x, const TensorView& factor, const TensorView& out) {
  if (out.elements() == 0) return Error{};
  const Extents extents = {out.elements() / factor.dims[1], factor.dims[0], factor.dims[1]};
  const auto* const of_factor = static_cast<const float*>(factor.data);
  return WithTypedData(x, [&](const auto* of_x) {
    return WithTypedData(out, [&](auto* of_out) {
      return LaunchMultiply(device_, of_x, of_factor, extents, of_out);
    });
  });
}

}  // namespace thinwire
