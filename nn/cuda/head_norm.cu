#include <memory>
#include <utility>

#include "nn/cuda/column_sums.h"
#include "nn/cuda/columns.cuh"
#include "nn/cuda/kernels.h"
#include "nn/cuda/rows.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// Place of a row of [head_size] elements among the heads of its position.
struct HeadPlace {
  bool has_norm, is_key;

  template <typename Arguments>
  __device__ HeadPlace(const Arguments& a, int64_t row) {
    const int64_t head = row % (a.heads + 2 * a.kv_heads);
    is_key = head >= a.heads;
    has_norm = head < a.heads + a.kv_heads;
  }
};

template <typename T, int kN>
__device__ void CopyRow(const RowThread<1>& thread, const T* from, int64_t n, T* to) {
  float values[kN];
  for (int64_t j = thread.index * kN; j < n; j += thread.kCount * kN) {
    LoadAligned(from + j, values);
    StoreAligned(values, to + j);
  }
}

// Normalizes heads, each with one warp, in two passes over its elements.
template <typename T, int kN>
__global__ void NormalizeHead(HeadNormForward a, int64_t rows) {
  const RowThread<1> thread;
  if (thread.row >= rows) return;
  const HeadPlace place(a, thread.row);
  const T* const x = a.x.as<const T>() + thread.row * a.head_size;
  T* const y = a.y.as<T>() + thread.row * a.head_size;
  if (!place.has_norm) return CopyRow<T, kN>(thread, x, a.head_size, y);
  const float* const scales = a.scale + (place.is_key ? a.head_size : 0);
  float values[kN], scale[kN];
  float squares = 0;
  for (int64_t j = thread.index * kN; j < a.head_size; j += thread.kCount * kN) {
    LoadAligned(x + j, values);
    for (int i = 0; i < kN; ++i) squares += values[i] * values[i];
  }
  const float mean = thread.Reduce<Sum>(squares) / static_cast<float>(a.head_size);
  const float rstd = 1.0f / sqrtf(mean + a.epsilon);
  for (int64_t j = thread.index * kN; j < a.head_size; j += thread.kCount * kN) {
    LoadAligned(x + j, values);
    LoadAligned(scales + j, scale);
    for (int i = 0; i < kN; ++i) values[i] = values[i] * rstd * scale[i];
    StoreAligned(values, y + j);
  }
  if (thread.index == 0) a.rstd[thread.row] = rstd;
}

// Computes dx of heads, each with one warp: with xhat = x rstd and g = scale dy it is
// rstd (g - xhat mean(g xhat)).
template <typename T, int kN>
__global__ void DifferentiateHead(HeadNormBackward a, int64_t rows) {
  const RowThread<1> thread;
  if (thread.row >= rows) return;
  const HeadPlace place(a, thread.row);
  const T* const x = a.x.as<const T>() + thread.row * a.head_size;
  const T* const dy = a.dy.as<const T>() + thread.row * a.head_size;
  T* const dx = a.dx.as<T>() + thread.row * a.head_size;
  if (!place.has_norm) return CopyRow<T, kN>(thread, dy, a.head_size, dx);
  const float* const scales = a.scale + (place.is_key ? a.head_size : 0);
  const float rstd = a.rstd[thread.row];
  float xs[kN], dys[kN], scale[kN];
  float products = 0;
  for (int64_t j = thread.index * kN; j < a.head_size; j += thread.kCount * kN) {
    LoadAligned(x + j, xs);
    LoadAligned(dy + j, dys);
    LoadAligned(scales + j, scale);
    for (int i = 0; i < kN; ++i) products += dys[i] * scale[i] * (xs[i] * rstd);
  }
  const float mean = thread.Reduce<Sum>(products) / static_cast<float>(a.head_size);
  for (int64_t j = thread.index * kN; j < a.head_size; j += thread.kCount * kN) {
    LoadAligned(x + j, xs);
    LoadAligned(dy + j, dys);
    LoadAligned(scales + j, scale);
    for (int i = 0; i < kN; ++i) xs[i] = (dys[i] * scale[i] - xs[i] * rstd * mean) * rstd;
    StoreAligned(xs, dx + j);
  }
}

// Sums dy xhat over each tile, for queries and for keys.
template <typename T, int kN>
__global__ void SumScaleGradients(HeadNormBackward a, ColumnGrid grid, double* tile_sums) {
  const ColumnThread<kN> thread(grid);
  float sums[2][kN] = {};
  for (int64_t row = thread.row; row < thread.end; row += thread.stride) {
    const HeadPlace place(a, row);
    if (!place.has_norm) continue;
    float x[kN], dy[kN];
    LoadAligned(a.x.as<const T>() + row * grid.columns + thread.column, x);
    LoadAligned(a.dy.as<const T>() + row * grid.columns + thread.column, dy);
    for (int i = 0; i < kN; ++i) {
      const float product = dy[i] * (x[i] * a.rstd[row]);
      sums[0][i] += place.is_key ? 0.0f : product;
      sums[1][i] += place.is_key ? product : 0.0f;
    }
  }
  StoreTileSums(grid, sums, tile_sums);
}

// Returns whether rows of a head of x can be accessed by whole vectors.
template <typename... P>
bool HasWideHeads(const TensorView& x, int64_t head_size, const P*... others) {
  TensorView heads = x;
  heads.rank = 1;
  heads.dims[0] = head_size;
  return IsWide(heads, others...);
}

}  // namespace

Error Kernels::NormalizeHeads(const HeadNormForward& a) {
  const int64_t rows = a.x.elements() / a.head_size;
  const bool wide = HasWideHeads(a.x, a.head_size, a.y.data, a.scale);
  return WithElements(a.x.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    return Launch(device_, BlocksWith(kWarps, rows), dim3(kThreads),
                  NormalizeHead<T, decltype(elements)::kVector>, a, rows);
  });
}

Error NormalizeHeadsBackward(CudaDevice* device, const HeadNormBackward& a, ColumnSums* sums) {
  const int64_t rows = a.x.elements() / a.head_size;
  const bool wide = HasWideHeads(a.x, a.head_size, a.dy.data, a.dx.data, a.scale);
  const ColumnGrid grid(rows, a.head_size, wide ? WideOf(a.x.dtype) : 1);
  const TileSumsShape shape{grid.tiles, /*sums=*/2, a.head_size};
  auto tile_sums = std::make_unique<CudaScratch>(device);
  RETURN_ERROR(tile_sums->Reserve(shape.bytes()));
  RETURN_ERROR(WithElements(a.x.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    RETURN_ERROR(Launch(device, grid.blocks(), dim3(kThreads), SumScaleGradients<T, kN>, a, grid,
                        tile_sums->as<double>()));
    return Launch(device, BlocksWith(kWarps, rows), dim3(kThreads), DifferentiateHead<T, kN>, a,
                  rows);
  }));
  if (a.dscale == nullptr) return Error{};
  return sums->Add(shape, std::move(tile_sums), a.head_size, {a.dscale, a.dscale + a.head_size});
}

}  // namespace thinwire::cuda
