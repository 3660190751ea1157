#include <cmath>

#include "nn/cuda/columns.cuh"
#include "nn/cuda/kernels.h"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// Returns the grid of a batch as [pixels, channels].
ColumnGrid GridOf(const TensorView& x, bool wide) {
  const int64_t channels = x.dims[x.rank - 1];
  return ColumnGrid(channels == 0 ? 0 : x.elements() / channels, channels,
                    wide ? WideOf(x.dtype) : 1);
}

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

struct Statistics {
  float* running_mean;
  float* running_var;
  float* mean;
  float* rstd;
  double momentum, epsilon;
};

__device__ inline void Move(float* running, double momentum, double value) {
  *running = static_cast<float>((1 - momentum) * static_cast<double>(*running) + momentum * value);
}

// Adds up a channel's tiles, computes its mean and rstd, and moves the running statistics.
template <typename T>
__global__ void FinishStatistics(const T* x, ColumnGrid grid, const double* tile_sums,
                                 Statistics statistics) {
  int64_t c = 0;
  double totals[2];
  const TileSums tiles{tile_sums, grid.tiles, grid.columns, 2 * grid.columns};
  if (!SumTiles(tiles, blockIdx.x, &c, totals)) return;
  const double n = static_cast<double>(grid.rows);
  const double shifted = totals[0] / n;
  const double mean = shifted + static_cast<double>(Load(x + c));
  const double square = totals[1] / n - shifted * shifted;
  const double variance = square > 0 ? square : 0;
  statistics.mean[c] = static_cast<float>(mean);
  statistics.rstd[c] = static_cast<float>(1.0 / sqrt(variance + statistics.epsilon));
  Move(statistics.running_mean + c, statistics.momentum, mean);
  Move(statistics.running_var + c, statistics.momentum, variance * n / (n - 1));
}

template <typename T>
struct ApplyArguments {
  const T* x;
  const T* residual;
  T* y;
  const float* scale;
  const float* bias;
  const float* mean;
  const float* rstd;      // null in inference:
  const float* variance;  // then it is 1 / sqrt(variance + epsilon)
  float epsilon;
  bool relu;
};

template <int kN>
struct RowPair {
  float x[kN], residual[kN];
};

template <typename T, int kN, bool kResidual>
__global__ void Apply(ApplyArguments<T> a, ColumnGrid grid) {
  const ColumnThread<kN> thread(grid);
  if (!thread.has_rows()) return;
  float mean[kN], slope[kN], bias[kN];
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    const int64_t c = thread.column + i;
    mean[i] = a.mean[c];
    slope[i] =
        a.rstd != nullptr ? a.scale[c] * a.rstd[c] : a.scale[c] / sqrtf(a.variance[c] + a.epsilon);
    bias[i] = a.bias[c];
  }
  // Goes backwards, as the end of x is still in the cache.
  const auto at = [&](int64_t row) { return (grid.rows - 1 - row) * grid.columns + thread.column; };
  thread.template ForEachRow<4>(
      [&](int64_t row) {
        RowPair<kN> values;
        LoadAligned(a.x + at(row), values.x);
        if constexpr (kResidual) LoadAligned(a.residual + at(row), values.residual);
        return values;
      },
      [&](int64_t row, const RowPair<kN>& values) {
        float y[kN];
#pragma unroll
        for (int i = 0; i < kN; ++i) {
          // A comparison, so that NaN passes the ReLU.
          float z = (values.x[i] - mean[i]) * slope[i] + bias[i];
          if constexpr (kResidual) z = z + values.residual[i];
          y[i] = a.relu && z < 0 ? 0 : z;
        }
        StoreAligned(y, a.y + at(row));
      });
}

template <typename Arguments>
bool IsWide(const Arguments& a) {
  return a.x.dims[a.x.rank - 1] % WideOf(a.x.dtype) == 0 &&
         AreAligned(a.x.data, a.residual.data, a.y.data);
}

// Fills in the members that BatchNormForward and BatchNormInference share.
template <typename T, typename Arguments>
ApplyArguments<T> ApplyOf(const Arguments& a) {
  ApplyArguments<T> apply{};
  apply.x = static_cast<const T*>(a.x.data);
  apply.residual = static_cast<const T*>(a.residual.data);
  apply.y = static_cast<T*>(a.y.data);
  apply.scale = a.scale;
  apply.bias = a.bias;
  apply.epsilon = a.epsilon;
  apply.relu = a.relu;
  return apply;
}

template <typename T, int kN>
Error LaunchApply(CudaDevice* device, const ApplyArguments<T>& apply, const ColumnGrid& grid) {
  return apply.residual != nullptr
             ? Launch(device, grid.blocks(), dim3(kThreads), Apply<T, kN, true>, apply, grid)
             : Launch(device, grid.blocks(), dim3(kThreads), Apply<T, kN, false>, apply, grid);
}

}  // namespace

Error NormalizeBatch(CudaDevice* device, const BatchNormForward& a) {
  const bool wide = IsWide(a);
  const ColumnGrid grid = GridOf(a.x, wide);
  if (grid.rows < 2) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "batch norm: %lld value(s) a channel, want at least 2 to train",
                     static_cast<long long>(grid.rows));
  }
  CudaScratch tile_sums(device);
  RETURN_ERROR(tile_sums.Reserve(TileSumsBytes(grid)));
  return WithElements(a.x.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    ApplyArguments<T> apply = ApplyOf<T>(a);
    apply.mean = a.mean;
    apply.rstd = a.rstd;
    const Statistics statistics{a.running_mean,
                                a.running_var,
                                a.mean,
                                a.rstd,
                                static_cast<double>(a.momentum),
                                static_cast<double>(a.epsilon)};
    RETURN_ERROR(Launch(device, grid.blocks(), dim3(kThreads), SumStatistics<T, kN>, apply.x, grid,
                        tile_sums.as<double>()));
    RETURN_ERROR(Launch(device, BlocksWith(kColumnsOfBlock, grid.columns), dim3(kThreads),
                        FinishStatistics<T>, apply.x, grid, tile_sums.as<double>(), statistics));
    return LaunchApply<T, kN>(device, apply, grid);
  });
}

Error NormalizeByRunning(CudaDevice* device, const BatchNormInference& a) {
  const bool wide = IsWide(a);
  const ColumnGrid grid = GridOf(a.x, wide);
  return WithElements(a.x.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    ApplyArguments<T> apply = ApplyOf<T>(a);
    apply.mean = a.running_mean;
    apply.variance = a.running_var;
    return LaunchApply<T, decltype(elements)::kVector>(device, apply, grid);
  });
}

}  // namespace thinwire::cuda
