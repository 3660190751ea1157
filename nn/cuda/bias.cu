#include <memory>
#include <utility>

#include "nn/cuda/column_sums.h"
#include "nn/cuda/columns.cuh"
#include "nn/cuda/kernels.h"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// Adds `bias` to every row of y, which has `vectors` vectors of kN elements, `of_row` of them in a
// row. A thread moves on by a fixed step, so it follows its column by addition instead of a
// division each time.
template <typename T, int kN>
__global__ void AddToRows(const float* bias, T* y, int64_t vectors, int64_t of_row) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t column_step = step % of_row;
  int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t column = at % of_row;
  for (; at < vectors; at += step) {
    float values[kN];
    LoadAligned(y + at * kN, values);
#pragma unroll
    for (int i = 0; i < kN; ++i) values[i] += bias[column * kN + i];
    StoreAligned(values, y + at * kN);
    column += column_step;
    if (column >= of_row) column -= of_row;
  }
}

// Sums dy over each tile.
template <typename T, int kN>
__global__ void SumRows(const T* dy, ColumnGrid grid, double* tile_sums) {
  const ColumnThread<kN> thread(grid);
  float sums[1][kN] = {};
  struct Values {
    float of[kN];
  };
  thread.template ForEachRow<4>(
      [&](int64_t row) {
        Values values;
        LoadAligned(dy + row * grid.columns + thread.column, values.of);
        return values;
      },
      [&](int64_t, const Values& values) {
#pragma unroll
        for (int i = 0; i < kN; ++i) sums[0][i] += values.of[i];
      });
  StoreTileSums(grid, sums, tile_sums);
}

}  // namespace

Error AddBias(CudaDevice* device, const float* bias, const TensorView& y) {
  const int64_t channels = y.dims[y.rank - 1];
  if (y.elements() == 0) return Error{};
  const int64_t most_blocks = int64_t{8} * device->multiprocessors();
  return WithElements(y.dtype, IsWide(y), [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    const int64_t vectors = y.elements() / kN;
    return Launch(device, BlocksFor(vectors, kThreads, most_blocks), dim3(kThreads),
                  AddToRows<T, kN>, bias, static_cast<T*>(y.data), vectors, channels / kN);
  });
}

Error AddColumnSums(CudaDevice* device, const TensorView& dy, int64_t channels, ColumnSums* sums,
                    float* gradient) {
  if (dy.elements() == 0) return Error{};
  const bool wide = IsWide(dy);
  const ColumnGrid grid = GridOf(dy, wide);
  const TileSumsShape shape{grid.tiles, /*sums=*/1, grid.columns};
  auto tile_sums = std::make_unique<CudaScratch>(device);
  RETURN_ERROR(tile_sums->Reserve(shape.bytes()));
  RETURN_ERROR(WithElements(dy.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    return Launch(device, grid.blocks(), dim3(kThreads), SumRows<T, kN>,
                  static_cast<const T*>(dy.data), grid, tile_sums->as<double>());
  }));
  return sums->Add(shape, std::move(tile_sums), channels, {gradient});
}

}  // namespace thinwire::cuda
