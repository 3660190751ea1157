// Computes dx = scale rstd (dz - mean(dz) - xhat mean(dz xhat)) with xhat = (x - mean) rstd.

#include "nn/cuda/columns.cuh"
#include "nn/cuda/kernels.h"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// Ways to make dz from dy.
enum class Mask {
  kNone,        // no ReLU
  kRecomputed,  // z > 0 with z = (x - mean) slope + bias
  kStored       // y > 0; dz is written to dresidual
};

struct Arguments : BatchNormBackward {
  float* offset;  // dx = slope dz + offset + x_slope (x - mean), each [channels]
  float* x_slope;
};

// Statistics and parameters of a thread's channels.
template <int kN>
struct Channels {
  float mean[kN] = {}, slope[kN] = {}, bias[kN] = {};  // zero in a thread without rows

  __device__ Channels(const Arguments& a, const ColumnThread<kN>& thread) {
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
struct Row {
  float x[kN], dy[kN], y[kN];
};

template <typename T, Mask kMask, int kN>
__device__ inline Row<kN> ReadRow(const Arguments& a, const TensorView& dy, int64_t at) {
  Row<kN> row;
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
__device__ inline float MaskedGradient(const Row<kN>& row, const Channels<kN>& channels, int i,
                                       float centred) {
  if constexpr (kMask == Mask::kNone) return row.dy[i];
  const float z =
      kMask == Mask::kStored ? row.y[i] : centred * channels.slope[i] + channels.bias[i];
  return z > 0 ? row.dy[i] : 0;
}

// Sums dz and dz (x - mean) over each tile.
template <typename T, int kN, Mask kMask>
__global__ void SumGradients(Arguments a, ColumnGrid grid, double* tile_sums) {
  const ColumnThread<kN> thread(grid);
  const Channels<kN> channels(a, thread);
  float sums[2][kN] = {};
  thread.template ForEachRow<2>(
      [&](int64_t row) {
        return ReadRow<T, kMask, kN>(a, a.dy, row * grid.columns + thread.column);
      },
      [&](int64_t row, const Row<kN>& values) {
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
__global__ void FinishGradients(Arguments a, ColumnGrid grid, const double* tile_sums) {
  int64_t c = 0;
  double totals[2];
  const TileSums tiles{tile_sums, grid.tiles, grid.columns, 2 * grid.columns};
  if (!SumTiles(tiles, blockIdx.x, &c, totals)) return;
  const double n = static_cast<double>(grid.rows), rstd = static_cast<double>(a.rstd[c]);
  const double slope = static_cast<double>(a.scale[c] * a.rstd[c]);
  a.dbias[c] += static_cast<float>(totals[0]);
  a.dscale[c] += static_cast<float>(totals[1] * rstd);
  a.offset[c] = static_cast<float>(-slope * totals[0] / n);
  a.x_slope[c] = static_cast<float>(-slope * rstd * rstd * totals[1] / n);
}

// Computes dx from `dy`; kMask is the masking that `dy` still needs.
template <typename T, int kN, Mask kMask>
__global__ void ApplyGradients(Arguments a, TensorView dy, ColumnGrid grid) {
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
      [&](int64_t row, const Row<kN>& values) {
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
Error LaunchAll(CudaDevice* device, const Arguments& a, const ColumnGrid& grid, double* tile_sums) {
  RETURN_ERROR(Launch(device, grid.blocks(), dim3(kThreads), SumGradients<T, kN, kMask>, a, grid,
                      tile_sums));
  RETURN_ERROR(Launch(device, BlocksWith(kColumnsOfBlock, grid.columns), dim3(kThreads),
                      FinishGradients, a, grid, tile_sums));
  const TensorView& dy = kMask == Mask::kStored ? a.dresidual : a.dy;
  return Launch(device, grid.blocks(), dim3(kThreads), ApplyGradients<T, kN, kLeft>, a, dy, grid);
}

}  // namespace

Error NormalizeBatchBackward(CudaDevice* device, const BatchNormBackward& a) {
  const int64_t channels = a.x.dims[a.x.rank - 1];
  if (channels == 0) return Error{};
  const bool wide = IsWide(a.x, a.y.data, a.dy.data, a.dx.data, a.dresidual.data, a.addend.data);
  const ColumnGrid grid = GridOf(a.x, wide);
  const bool residual = a.dresidual.data != nullptr;
  if (residual && !a.relu) RETURN_ERROR(Convert(device, a.dy, a.dresidual));
  CudaScratch tile_sums(device), coefficients(device);
  RETURN_ERROR(tile_sums.Reserve(TileSumsBytes(grid)));
  RETURN_ERROR(coefficients.Reserve(static_cast<size_t>(2 * channels) * sizeof(float)));
  double* const sums = tile_sums.as<double>();
  const Arguments arguments{a, coefficients.as<float>(), coefficients.as<float>() + channels};
  return WithElements(a.x.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    if (!a.relu) {
      return LaunchAll<T, kN, Mask::kNone, Mask::kNone>(device, arguments, grid, sums);
    }
    return residual ? LaunchAll<T, kN, Mask::kStored, Mask::kNone>(device, arguments, grid, sums)
                    : LaunchAll<T, kN, Mask::kRecomputed, Mask::kRecomputed>(device, arguments,
                                                                             grid, sums);
  });
}

}  // namespace thinwire::cuda
