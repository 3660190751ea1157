#include <algorithm>
#include <memory>
#include <utility>

#include "nn/cuda/column_sums.h"
#include "nn/cuda/columns.cuh"
#include "nn/cuda/kernels.h"
#include "nn/cuda/rows.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// Normalizes rows, each with kRowWarps warps, in up to three passes over a row: the addend and the
// mean, the variance around it, the result. The sum of squares alone would cancel in fp32.
template <typename T, int kN, int kRowWarps>
__global__ void NormalizeRow(LayerNormForward a, int64_t rows, int64_t features) {
  const RowThread<kRowWarps> thread;
  if (thread.row >= rows) return;
  const bool adds = a.addend.data != nullptr;
  const int64_t first = thread.row * features;
  const T* x = a.x.as<const T>() + first;
  T* const y = a.y.as<T>() + first;
  const float n = static_cast<float>(features);
  float values[kN], scale[kN], bias[kN] = {};
  float mean = 0;
  if (a.centred || adds) {
    float sum = 0;
    for (int64_t j = thread.index * kN; j < features; j += thread.kCount * kN) {
      LoadAligned(x + j, values);
      if (adds) {
        float addend[kN];
        LoadAligned(a.addend.as<const T>() + first + j, addend);
        for (int i = 0; i < kN; ++i) values[i] = Rounded<T>(values[i] + addend[i]);
        StoreAligned(values, a.sum.as<T>() + first + j);
      }
      for (int i = 0; i < kN; ++i) sum += values[i];
    }
    if (a.centred) mean = thread.template Reduce<Sum>(sum) / n;
  }
  if (adds) x = a.sum.as<const T>() + first;  // of which a thread reads what it has written itself
  float squares = 0;
  for (int64_t j = thread.index * kN; j < features; j += thread.kCount * kN) {
    LoadAligned(x + j, values);
    for (int i = 0; i < kN; ++i) squares += (values[i] - mean) * (values[i] - mean);
  }
  const float variance = thread.template Reduce<Sum>(squares) / n;
  const float rstd = 1.0f / sqrtf(variance + a.epsilon);
  for (int64_t j = thread.index * kN; j < features; j += thread.kCount * kN) {
    LoadAligned(x + j, values);
    LoadAligned(a.scale + j, scale);
    if (a.bias != nullptr) LoadAligned(a.bias + j, bias);
    for (int i = 0; i < kN; ++i) values[i] = (values[i] - mean) * rstd * scale[i] + bias[i];
    StoreAligned(values, y + j);
  }
  if (thread.index == 0) {
    if (a.centred) a.mean[thread.row] = mean;
    a.rstd[thread.row] = rstd;
  }
}

// Returns the mean of a row of x; 0 if rows are not centred.
__device__ inline float MeanOf(const LayerNormBackward& a, int64_t row) {
  return a.centred ? a.mean[row] : 0.0f;
}

// Computes dx of rows, each with kRowWarps warps, in two passes over a row: the means of g and of
// g xhat with g = scale dy, then dx = rstd (g - mean(g) - xhat mean(g xhat)).
template <typename T, int kN, int kRowWarps>
__global__ void DifferentiateRow(LayerNormBackward a, int64_t rows, int64_t features) {
  const RowThread<kRowWarps> thread;
  if (thread.row >= rows) return;
  const int64_t row = rows - 1 - thread.row;  // backwards: the end is in the cache
  const T* const x = a.x.as<const T>() + row * features;
  const T* const dy = a.dy.as<const T>() + row * features;
  T* const dx = a.dx.as<T>() + row * features;
  const T* const addend =
      a.addend.data != nullptr ? a.addend.as<const T>() + row * features : nullptr;
  const float mean = MeanOf(a, row), rstd = a.rstd[row];
  float xs[kN], dys[kN], scale[kN];
  float g_sum = 0, product_sum = 0;
  for (int64_t j = thread.index * kN; j < features; j += thread.kCount * kN) {
    LoadAligned(x + j, xs);
    LoadAligned(dy + j, dys);
    LoadAligned(a.scale + j, scale);
    for (int i = 0; i < kN; ++i) {
      const float g = dys[i] * scale[i];
      g_sum += g;
      product_sum += g * ((xs[i] - mean) * rstd);
    }
  }
  const float g_mean =
      !a.centred ? 0.0f : thread.template Reduce<Sum>(g_sum) / static_cast<float>(features);
  const float product_mean =
      thread.template Reduce<Sum>(product_sum) / static_cast<float>(features);
  for (int64_t j = thread.index * kN; j < features; j += thread.kCount * kN) {
    LoadAligned(x + j, xs);
    LoadAligned(dy + j, dys);
    LoadAligned(a.scale + j, scale);
    for (int i = 0; i < kN; ++i) {
      const float xhat = (xs[i] - mean) * rstd;
      xs[i] = (dys[i] * scale[i] - g_mean - xhat * product_mean) * rstd;
    }
    if (addend != nullptr) {
      LoadAligned(addend + j, dys);
      for (int i = 0; i < kN; ++i) xs[i] = Rounded<T>(xs[i]) + dys[i];
    }
    StoreAligned(xs, dx + j);
  }
}

// Rounds a thread's part of a row's dx and adds `addend`, of which `left` elements are left in the
// row. All loads go to `spare` registers before the first is used. More registers would let fewer
// blocks run at a time.
template <typename T, int kN, int kVectors>
__device__ inline void AddTo(const T* addend, int64_t left, float (&spare)[kVectors][kN],
                             float (&dx)[kVectors][kN]) {
  constexpr int kOfWarp = kWarpThreads * kN;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (v * kOfWarp < left) LoadAligned(addend + v * kOfWarp, spare[v]);
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
#pragma unroll
    for (int i = 0; i < kN; ++i) dx[v][i] = Rounded<T>(dx[v][i]) + spare[v][i];
  }
}

// Computes dx and sums together, for rows that a warp holds in registers with up to kVectors
// vectors a thread. The sums of a block's rows go to tile_sums, [blocks, 2, features]. A thread
// adds up some rows in fp32.
template <typename T, int kN, int kVectors>
__global__ void __launch_bounds__(kThreads)
    DifferentiateRows(LayerNormBackward a, int64_t rows, int64_t features, double* tile_sums) {
  constexpr int kOfWarp = kWarpThreads * kN;
  const unsigned lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  float sums[2][kVectors][kN] = {};
  const int64_t step = int64_t{gridDim.x} * kWarps;
  for (int64_t row = int64_t{blockIdx.x} * kWarps + warp; row < rows; row += step) {
    const int64_t first = row * features + lane * kN;
    const float mean = MeanOf(a, row), rstd = a.rstd[row];
    float xhats[kVectors][kN] = {}, dys[kVectors][kN] = {}, scale[kN];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (lane * kN + v * kOfWarp >= features) continue;
      LoadAligned(a.x.as<const T>() + first + v * kOfWarp, xhats[v]);
      LoadAligned(a.dy.as<const T>() + first + v * kOfWarp, dys[v]);
    }
    float g_sum = 0, product_sum = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (lane * kN + v * kOfWarp >= features) continue;
      LoadAligned(a.scale + lane * kN + v * kOfWarp, scale);
#pragma unroll
      for (int i = 0; i < kN; ++i) {
        xhats[v][i] = (xhats[v][i] - mean) * rstd;
        sums[0][v][i] += dys[v][i] * xhats[v][i];
        sums[1][v][i] += dys[v][i];
        dys[v][i] *= scale[i];
        g_sum += dys[v][i];
        product_sum += dys[v][i] * xhats[v][i];
      }
    }
    const auto n = static_cast<float>(features);
    const float g_mean = !a.centred ? 0.0f : WarpReduce<Sum>(g_sum) / n;
    const float product_mean = WarpReduce<Sum>(product_sum) / n;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (lane * kN + v * kOfWarp >= features) continue;
#pragma unroll
      for (int i = 0; i < kN; ++i) {
        dys[v][i] = (dys[v][i] - g_mean - xhats[v][i] * product_mean) * rstd;
      }
    }
    if (a.addend.data != nullptr)
      AddTo(a.addend.as<const T>() + first, features - lane * kN, xhats, dys);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (lane * kN + v * kOfWarp < features)
        StoreAligned(dys[v], a.dx.as<T>() + first + v * kOfWarp);
    }
  }
  // Adds the warps' sums in shared memory, first of dscale, then of dbias, in fp64.
  __shared__ float of_warps[kWarps][kVectors * kOfWarp];
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    if (k > 0) __syncthreads();
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int i = 0; i < kN; ++i) of_warps[warp][v * kOfWarp + lane * kN + i] = sums[k][v][i];
    }
    __syncthreads();
    for (int64_t j = threadIdx.x; j < features; j += kThreads) {
      double total = 0;
      for (int w = 0; w < kWarps; ++w) total += static_cast<double>(of_warps[w][j]);
      tile_sums[(2 * int64_t{blockIdx.x} + k) * features + j] = total;
    }
  }
}

template <int kN>
struct Row {
  float x[kN], dy[kN], mean, rstd;
};

// Sums dy xhat and dy over each tile.
template <typename T, int kN>
__global__ void SumParameterGradients(LayerNormBackward a, ColumnGrid grid, double* tile_sums) {
  const ColumnThread<kN> thread(grid);
  const T* const x = a.x.as<const T>();
  const T* const dy = a.dy.as<const T>();
  const float* const means = a.centred ? a.mean : nullptr;
  const float* const rstds = a.rstd;
  float sums[2][kN] = {};
  thread.template ForEachRow<2>(
      [&](int64_t row) {
        const int64_t at = row * grid.columns + thread.column;
        Row<kN> values;
        LoadAligned(x + at, values.x);
        LoadAligned(dy + at, values.dy);
        values.mean = means != nullptr ? means[row] : 0.0f;
        values.rstd = rstds[row];
        return values;
      },
      [&](int64_t, const Row<kN>& values) {
#pragma unroll
        for (int i = 0; i < kN; ++i) {
          sums[0][i] += values.dy[i] * ((values.x[i] - values.mean) * values.rstd);
          sums[1][i] += values.dy[i];
        }
      });
  StoreTileSums(grid, sums, tile_sums);
}

constexpr int64_t kMostBlocks = 256;

// Launch of DifferentiateRows for a matrix: the number of blocks, by its shape alone, and the
// instance.
template <typename T, int kN>
struct AtOnce {
  static constexpr int kEach = 8 / kN;  // vectors that make 8 elements
  static constexpr int64_t kRowsOfWarp = 4;
  using Kernel = void (*)(LayerNormBackward, int64_t, int64_t, double*);

  static bool Suits(int64_t features) { return kN > 1 && !IsLongRow(features); }
  static int64_t Blocks(int64_t rows) {
    return std::clamp<int64_t>(rows / (kWarps * kRowsOfWarp), 1, kMostBlocks);
  }
  static Kernel KernelFor(int64_t features) {
    const int64_t vectors = (features + 8 * kWarpThreads - 1) / (8 * kWarpThreads);
    return vectors == 1   ? DifferentiateRows<T, kN, kEach>
           : vectors == 2 ? DifferentiateRows<T, kN, 2 * kEach>
           : vectors == 3 ? DifferentiateRows<T, kN, 3 * kEach>
                          : DifferentiateRows<T, kN, 4 * kEach>;
  }
};

// Launches the kernels. add_sums(tiles, launch) calls launch(tile_sums) with memory for so many
// tiles, and adds what it leaves there to dscale and dbias.
template <typename T, int kN, typename AddSums>
Error LaunchAll(CudaDevice* device, const LayerNormBackward& a, const ColumnGrid& grid,
                const AddSums& add_sums) {
  if constexpr (kN > 1) {
    if (AtOnce<T, kN>::Suits(grid.columns)) {
      const int64_t blocks = AtOnce<T, kN>::Blocks(grid.rows);
      return add_sums(blocks, [&](double* tile_sums) {
        return Launch(device, BlocksWith(1, blocks), dim3(kThreads),
                      AtOnce<T, kN>::KernelFor(grid.columns), a, grid.rows, grid.columns,
                      tile_sums);
      });
    }
  }
  RETURN_ERROR(add_sums(grid.tiles, [&](double* tile_sums) {
    return Launch(device, grid.blocks(), dim3(kThreads), SumParameterGradients<T, kN>, a, grid,
                  tile_sums);
  }));
  return IsLongRow(grid.columns)
             ? Launch(device, BlocksWith(1, grid.rows), dim3(kThreads),
                      DifferentiateRow<T, kN, kWarps>, a, grid.rows, grid.columns)
             : Launch(device, BlocksWith(kWarps, grid.rows), dim3(kThreads),
                      DifferentiateRow<T, kN, 1>, a, grid.rows, grid.columns);
}

}  // namespace

Error Kernels::NormalizeRows(const LayerNormForward& a) {
  const int64_t features = a.x.dims[a.x.rank - 1];
  const int64_t rows = features == 0 ? 0 : a.x.elements() / features;
  const bool wide = IsWide(a.x, a.addend.data, a.sum.data, a.y.data, a.scale, a.bias);
  return WithElements(a.x.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    return IsLongRow(features) ? Launch(device_, BlocksWith(1, rows), dim3(kThreads),
                                        NormalizeRow<T, kN, kWarps>, a, rows, features)
                               : Launch(device_, BlocksWith(kWarps, rows), dim3(kThreads),
                                        NormalizeRow<T, kN, 1>, a, rows, features);
  });
}

// With xhat = (x - mean) rstd and g = scale dy:
//   dx = rstd (g - mean(g) - xhat mean(g xhat)),  dscale += sum(dy xhat),  dbias += sum(dy).
// RMS norm's gradients are the same with 0 for both means, of x and of g.
Error NormalizeRowsBackward(CudaDevice* device, const LayerNormBackward& a, ColumnSums* sums) {
  const int64_t features = a.x.dims[a.x.rank - 1];
  if (features == 0) return Error{};
  const bool wide = IsWide(a.x, a.dy.data, a.dx.data, a.addend.data, a.scale);
  const ColumnGrid grid(a.x.elements() / features, features, wide ? WideOf(a.x.dtype) : 1);
  const auto add_sums = [&](int64_t tiles, const auto& launch) {
    const TileSumsShape shape{tiles, /*sums=*/2, features};
    auto tile_sums = std::make_unique<CudaScratch>(device);
    RETURN_ERROR(tile_sums->Reserve(shape.bytes()));
    RETURN_ERROR(launch(tile_sums->template as<double>()));
    return sums->Add(shape, std::move(tile_sums), features, {a.dscale, a.dbias});
  };
  return WithElements(a.x.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    return LaunchAll<T, decltype(elements)::kVector>(device, a, grid, add_sums);
  });
}

}  // namespace thinwire::cuda
