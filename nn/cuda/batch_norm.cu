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

// Ways to make dz from dy.
enum class Mask {
  kNone,        // no ReLU
  kRecomputed,  // z > 0 with z = (x - mean) slope + bias
  kStored       // y > 0; dz is written to dresidual
};

struct BackwardArguments : BatchNormBackward {
  float* offset;  // dx = slope dz + offset + x_slope (x - mean), each [channels]
  float* x_slope;
};

// Statistics and parameters of a thread's channels.
template <int kN>
struct Channels {
  float mean[kN] = {}, slope[kN] = {}, bias[kN] = {};  // zero in a thread without rows

  __device__ Channels(const BackwardArguments& a, const ColumnThread<kN>& thread) {
    if (!thread.has_rows()) return;
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const int64_t c = thread.column + i;
      mean[i] = a.mean[c];
      slope[i] = a.scale[c] * a.rstd[c];
      bias[i] = a.bias[c];
    }
  }
};

template <int kN>
struct GradientRow {
  float x[kN], dy[kN], y[kN];
};

template <typename T, Mask kMask, int kN>
__device__ inline GradientRow<kN> ReadRow(const BackwardArguments& a, const TensorView& dy,
                                          int64_t at) {
  GradientRow<kN> row;
  LoadAligned(a.x.as<const T>() + at, row.x);
  LoadAligned(dy.as<const T>() + at, row.dy);
  if constexpr (kMask == Mask::kStored) {
    LoadAligned(a.y.as<const T>() + at, row.y);
    if (a.addend.data != nullptr) {
      float addend[kN];
      LoadAligned(a.addend.as<const T>() + at, addend);
#pragma unroll
      for (int i = 0; i < kN; ++i) row.dy[i] = Rounded<T>(row.dy[i] + addend[i]);
    }
  }
  return row;
}

template <Mask kMask, int kN>
__device__ inline float MaskedGradient(const GradientRow<kN>& row, const Channels<kN>& channels,
                                       int i, float centred) {
  if constexpr (kMask == Mask::kNone) return row.dy[i];
  const float z =
      kMask == Mask::kStored ? row.y[i] : centred * channels.slope[i] + channels.bias[i];
  return z > 0 ? row.dy[i] : 0;
}

// Sums dz and dz (x - mean) over each tile.
template <typename T, int kN, Mask kMask>
__global__ void SumGradients(BackwardArguments a, ColumnGrid grid, double* tile_sums) {
  const ColumnThread<kN> thread(grid);
  const Channels<kN> channels(a, thread);
  float sums[2][kN] = {};
  thread.template ForEachRow<2>(
      [&](int64_t row) {
        return ReadRow<T, kMask, kN>(a, a.dy, row * grid.columns + thread.column);
      },
      [&](int64_t row, const GradientRow<kN>& values) {
        float dz[kN];
#pragma unroll
        for (int i = 0; i < kN; ++i) {
          const float centred = values.x[i] - channels.mean[i];
          dz[i] = MaskedGradient<kMask>(values, channels, i, centred);
          sums[0][i] += dz[i];
          sums[1][i] += dz[i] * centred;
        }
        if constexpr (kMask == Mask::kStored) {
          StoreAligned(dz, a.dresidual.as<T>() + row * grid.columns + thread.column);
        }
      });
  StoreTileSums(grid, sums, tile_sums);
}

// Adds up a channel's tiles. Adds the totals to dscale and dbias and makes the constants of dx.
__global__ void FinishGradients(BackwardArguments a, ColumnGrid grid, const double* tile_sums) {
  int64_t c = 0;
  double totals[2];
  const TileSums tiles{tile_sums, grid.tiles, grid.columns, 2 * grid.columns};
  if (!SumTiles(tiles, blockIdx.x, &c, totals)) return;
  const double n = static_cast<double>(grid.rows), rstd = static_cast<double>(a.rstd[c]);
  const double slope = static_cast<double>(a.scale[c] * a.rstd[c]);
  if (a.dscale != nullptr) {
    a.dbias[c] += static_cast<float>(totals[0]);
    a.dscale[c] += static_cast<float>(totals[1] * rstd);
  }
  a.offset[c] = static_cast<float>(-slope * totals[0] / n);
  a.x_slope[c] = static_cast<float>(-slope * rstd * rstd * totals[1] / n);
}

// Computes dx from `dy`; kMask is the masking that `dy` still needs.
template <typename T, int kN, Mask kMask>
__global__ void ApplyGradients(BackwardArguments a, TensorView dy, ColumnGrid grid) {
  const ColumnThread<kN> thread(grid);
  if (!thread.has_rows()) return;
  const Channels<kN> channels(a, thread);
  float offset[kN], x_slope[kN];
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    offset[i] = a.offset[thread.column + i];
    x_slope[i] = a.x_slope[thread.column + i];
  }
  // Goes backwards, as the ends of x and dy are still in the cache.
  const auto at = [&](int64_t row) { return (grid.rows - 1 - row) * grid.columns + thread.column; };
  thread.template ForEachRow<2>(
      [&](int64_t row) { return ReadRow<T, kMask, kN>(a, dy, at(row)); },
      [&](int64_t row, const GradientRow<kN>& values) {
        float dx[kN];
#pragma unroll
        for (int i = 0; i < kN; ++i) {
          const float centred = values.x[i] - channels.mean[i];
          const float dz = MaskedGradient<kMask>(values, channels, i, centred);
          dx[i] = dz * channels.slope[i] + (centred * x_slope[i] + offset[i]);
        }
        StoreAligned(dx, a.dx.as<T>() + at(row));
      });
}

// Launches the three kernels. kLeft is the masking that the third one still has to do.
template <typename T, int kN, Mask kMask, Mask kLeft>
Error LaunchAll(CudaDevice* device, const BackwardArguments& a, const ColumnGrid& grid,
                double* tile_sums) {
  RETURN_ERROR(Launch(device, grid.blocks(), dim3(kThreads), SumGradients<T, kN, kMask>, a, grid,
                      tile_sums));
  RETURN_ERROR(Launch(device, BlocksWith(kColumnsOfBlock, grid.columns), dim3(kThreads),
                      FinishGradients, a, grid, tile_sums));
  const TensorView& dy = kMask == Mask::kStored ? a.dresidual : a.dy;
  return Launch(device, grid.blocks(), dim3(kThreads), ApplyGradients<T, kN, kLeft>, a, dy, grid);
}

}  // namespace

Error Kernels::NormalizeBatch(const BatchNormForward& a) {
  const bool wide = IsWide(a.x, a.residual.data, a.y.data);
  const ColumnGrid grid = GridOf(a.x, wide);
  RETURN_ERROR(CheckBatch(a, grid.rows));
  CudaScratch tile_sums(device_);
  if (a.mean != nullptr) RETURN_ERROR(tile_sums.Reserve(TileSumsBytes(grid)));
  return WithElements(a.x.dtype, wide, [&](auto elements) {
    return Submit<typename decltype(elements)::Type, decltype(elements)::kVector>(
        device_, a, grid, tile_sums.as<double>());
  });
}

// Computes dx = scale rstd (dz - mean(dz) - xhat mean(dz xhat)) with xhat = (x - mean) rstd.
Error Kernels::NormalizeBatchBackward(const BatchNormBackward& a) {
  const int64_t channels = a.x.dims[a.x.rank - 1];
  if (channels == 0) return Error{};
  const bool wide = IsWide(a.x, a.y.data, a.dy.data, a.dx.data, a.dresidual.data, a.addend.data);
  const ColumnGrid grid = GridOf(a.x, wide);
  const bool residual = a.dresidual.data != nullptr;
  if (residual && !a.relu) RETURN_ERROR(Convert(a.dy, a.dresidual));
  CudaScratch tile_sums(device_), coefficients(device_);
  RETURN_ERROR(tile_sums.Reserve(TileSumsBytes(grid)));
  RETURN_ERROR(coefficients.Reserve(static_cast<size_t>(2 * channels) * sizeof(float)));
  double* const sums = tile_sums.as<double>();
  const BackwardArguments arguments{a, coefficients.as<float>(),
                                    coefficients.as<float>() + channels};
  return WithElements(a.x.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    if (!a.relu) {
      return LaunchAll<T, kN, Mask::kNone, Mask::kNone>(device_, arguments, grid, sums);
    }
    return residual ? LaunchAll<T, kN, Mask::kStored, Mask::kNone>(device_, arguments, grid, sums)
                    : LaunchAll<T, kN, Mask::kRecomputed, Mask::kRecomputed>(device_, arguments,
                                                                             grid, sums);
  });
}

}  // namespace thinwire::cuda
