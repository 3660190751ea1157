#include <cmath>

#include "nn/checks.h"
#include "nn/cuda/columns.cuh"
#include "nn/cuda/kernels.h"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

template <int kN>
struct Row {
  float x[kN];
};

// Sums x - x[first pixel] and its square over each tile. The shift keeps squares from cancelling.
template <typename T, int kN>
__global__ void SumStatistics(const T* x, ColumnGrid grid, double* tile_sums) {
  const ColumnThread<kN> thread(grid);
  float shift[kN] = {}, sums[2][kN] = {};
  if (thread.has_rows()) LoadAligned(x + thread.column, shift);
  thread.template ForEachRow<4>(
      [&](int64_t row) {
        Row<kN> values;
        LoadAligned(x + row * grid.columns + thread.column, values.x);
        return values;
      },
      [&](int64_t, const Row<kN>& values) {
#pragma unroll
        for (int i = 0; i < kN; ++i) {
          const float v = values.x[i] - shift[i];
          sums[0][i] += v;
          sums[1][i] += v * v;
        }
      });
  StoreTileSums(grid, sums, tile_sums);
}

__device__ inline void Move(float* running, double momentum, double value) {
  *running = static_cast<float>((1 - momentum) * static_cast<double>(*running) + momentum * value);
}

// Adds up a channel's tiles, computes its mean and rstd, and moves the running statistics.
template <typename T>
__global__ void FinishStatistics(BatchNormForward a, ColumnGrid grid, const double* tile_sums) {
  int64_t c = 0;
  double totals[2];
  const TileSums tiles{tile_sums, grid.tiles, grid.columns, 2 * grid.columns};
  if (!SumTiles(tiles, blockIdx.x, &c, totals)) return;
  const double n = static_cast<double>(grid.rows);
  const double shifted = totals[0] / n;
  const double mean = shifted + static_cast<double>(Load(a.x.as<const T>() + c));
  const double square = totals[1] / n - shifted * shifted;
  const double variance = square > 0 ? square : 0;
  a.mean[c] = static_cast<float>(mean);
  a.rstd[c] = static_cast<float>(1.0 / sqrt(variance + static_cast<double>(a.epsilon)));
  const auto momentum = static_cast<double>(a.momentum);
  Move(a.running_mean + c, momentum, mean);
  Move(a.running_var + c, momentum, variance * n / (n - 1));
}

template <int kN>
struct RowPair {
  float x[kN], residual[kN];
};

template <typename T, int kN, bool kResidual>
__global__ void Apply(BatchNormForward a, ColumnGrid grid) {
  const ColumnThread<kN> thread(grid);
  if (!thread.has_rows()) return;
  const bool trains = a.mean != nullptr, relu = a.relu;
  const float* const means = (trains ? a.mean : a.running_mean) + thread.column;
  float mean[kN], slope[kN], bias[kN];
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    mean[i] = means[i];
    slope[i] = a.scale[thread.column + i];
    bias[i] = a.bias[thread.column + i];
  }
  if (trains) {
#pragma unroll
    for (int i = 0; i < kN; ++i) slope[i] *= a.rstd[thread.column + i];
  } else {
#pragma unroll
    for (int i = 0; i < kN; ++i) slope[i] /= sqrtf(a.running_var[thread.column + i] + a.epsilon);
  }
  const T* const x = a.x.as<const T>();
  const T* const residual = a.residual.as<const T>();
  T* const y = a.y.as<T>();
  // Goes backwards, as the end of x is still in the cache.
  const auto at = [&](int64_t row) { return (grid.rows - 1 - row) * grid.columns + thread.column; };
  thread.template ForEachRow<4>(
      [&](int64_t row) {
        RowPair<kN> values;
        LoadAligned(x + at(row), values.x);
        if constexpr (kResidual) LoadAligned(residual + at(row), values.residual);
        return values;
      },
      [&](int64_t row, const RowPair<kN>& values) {
        float of_row[kN];
#pragma unroll
        for (int i = 0; i < kN; ++i) {
          // A comparison, so that NaN passes the ReLU.
          float z = (values.x[i] - mean[i]) * slope[i] + bias[i];
          if constexpr (kResidual) z = z + values.residual[i];
          of_row[i] = relu && z < 0 ? 0 : z;
        }
        StoreAligned(of_row, y + at(row));
      });
}

template <typename T, int kN>
Error Submit(CudaDevice* device, const BatchNormForward& a, const ColumnGrid& grid,
             double* tile_sums) {
  if (a.mean != nullptr) {
    RETURN_ERROR(Launch(device, grid.blocks(), dim3(kThreads), SumStatistics<T, kN>,
                        a.x.as<const T>(), grid, tile_sums));
    RETURN_ERROR(Launch(device, BlocksWith(kColumnsOfBlock, grid.columns), dim3(kThreads),
                        FinishStatistics<T>, a, grid, tile_sums));
  }
  return Launch(device, grid.blocks(), dim3(kThreads),
                a.residual.data != nullptr ? Apply<T, kN, true> : Apply<T, kN, false>, a, grid);
}

}  // namespace

Error NormalizeBatch(CudaDevice* device, const BatchNormForward& a) {
  const bool wide = IsWide(a.x, a.residual.data, a.y.data);
  const ColumnGrid grid = GridOf(a.x, wide);
  RETURN_ERROR(CheckBatch(a, grid.rows));
  CudaScratch tile_sums(device);
  if (a.mean != nullptr) RETURN_ERROR(tile_sums.Reserve(TileSumsBytes(grid)));
  return WithElements(a.x.dtype, wide, [&](auto elements) {
    return Submit<typename decltype(elements)::Type, decltype(elements)::kVector>(
        device, a, grid, tile_sums.as<double>());
  });
}

}  // namespace thinwire::cuda
