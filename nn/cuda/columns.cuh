// Passes over a [rows, columns] matrix in which each thread stays in its columns, and sums over
// rows.
//
// A block of 256 threads is `width` vectors wide and 256 / width rows deep. So whole cache lines
// are read whether there are few columns (16) or many (512). Blocks take rows in turn, so that
// together they go through memory in order, and a second pass finds the matrix's end in the cache.
// Sums run over a thread's rows in fp32 (at most 64 of them) and over the threads of a warp in
// fp32. From there on they are fp64: over the warps of a block, then over blocks in a second
// kernel. The order depends only on the matrix's shape and element type, so equal inputs give equal
// bits on every device.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/reduce.cuh"

namespace thinwire::cuda {

// Division of the matrix among blocks.
struct ColumnGrid {
  int64_t rows = 0, columns = 0;
  int64_t groups = 0;  // blocks side by side
  int64_t tiles = 0;   // blocks one below the other; a tile is the rows of one
  unsigned width = 0;  // vectors side by side in a block: a power of two, at most 32

  // Chooses the grid. `vector` is the number of elements that a thread accesses at once.
  ColumnGrid(int64_t rows, int64_t columns, int64_t vector) : rows(rows), columns(columns) {
    const int64_t vectors = (columns + vector - 1) / vector;
    width = 1;
    while (width < kWarpThreads && width < vectors) width *= 2;
    groups = (vectors + width - 1) / width;
    const int64_t deep = kThreads / width;
    constexpr int64_t kBlocks = 512;  // enough to fill a device, few enough to add up quickly
    const int64_t rows_each = std::clamp<int64_t>(rows * groups / (deep * kBlocks), 8, 64);
    tiles = (rows + deep * rows_each - 1) / (deep * rows_each);
  }
  dim3 blocks() const { return dim3(static_cast<unsigned>(groups * tiles)); }
};

// Returns the grid of x as a matrix of rows of its last axis, accessed by vectors if it is `wide`.
inline ColumnGrid GridOf(const TensorView& x, bool wide) {
  const int64_t columns = x.dims[x.rank - 1];
  return ColumnGrid(columns == 0 ? 0 : x.elements() / columns, columns, wide ? WideOf(x.dtype) : 1);
}

// The kN columns and the rows of one thread.
template <int kN>
struct ColumnThread {
  int64_t tile, column;      // tile of the block; first column of the thread
  int64_t row, end, stride;  // no rows if the columns are outside

  __device__ explicit ColumnThread(const ColumnGrid& grid) {
    const int64_t group = static_cast<int64_t>(blockIdx.x) % grid.groups;
    tile = static_cast<int64_t>(blockIdx.x) / grid.groups;
    column = (group * grid.width + threadIdx.x % grid.width) * kN;
    const int64_t deep = kThreads / grid.width;
    row = tile * deep + threadIdx.x / grid.width;
    end = column < grid.columns ? grid.rows : row;
    stride = grid.tiles * deep;
  }
  __device__ bool has_rows() const { return row < end; }

  // Calls use(row, read(row)) for each row in ascending order. kAhead rows are read before the
  // first of them is used, so that loads overlap.
  template <int kAhead, typename Read, typename Use>
  __device__ void ForEachRow(const Read& read, const Use& use) const {
    int64_t at = row;
    for (; at + (kAhead - 1) * stride < end; at += kAhead * stride) {
      decltype(read(at)) values[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) values[i] = read(at + i * stride);
#pragma unroll
      for (int i = 0; i < kAhead; ++i) use(at + i * stride, values[i]);
    }
    for (; at < end; at += stride) use(at, read(at));
  }
};

// Adds up over the rows of a block. sums[k][i] is a thread's k-th sum of its i-th column. Calls
// result(k, j, total) once for each of the block's width kN columns j. Every thread calls this
// once.
template <int kSums, int kN, typename Result>
__device__ inline void AddUpRows(unsigned width, float (&sums)[kSums][kN], const Result& result) {
  __shared__ float of_warps[kSums][kWarps][kWarpThreads * kN];
  const unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
#pragma unroll
  // Lanes that hold the same column are `width` apart, so the exchange stops at that distance.
  for (int k = 0; k < kSums; ++k) {
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      for (unsigned distance = kWarpThreads / 2; distance >= width; distance /= 2) {
        sums[k][i] += __shfl_xor_sync(kWholeWarp, sums[k][i], distance);
      }
      if (lane < width) of_warps[k][warp][lane * kN + i] = sums[k][i];
    }
  }
  __syncthreads();
  const unsigned columns = width * kN;
  for (unsigned at = threadIdx.x; at < kSums * columns; at += kThreads) {
    const unsigned k = at / columns, j = at % columns;
    double total = 0;
    for (int w = 0; w < kWarps; ++w) total += static_cast<double>(of_warps[k][w][j]);
    result(static_cast<int>(k), static_cast<int64_t>(j), total);
  }
}

// For the first kernel: stores the sums of a tile's columns to tile_sums, [tiles, kSums, columns].
template <int kSums, int kN>
__device__ inline void StoreTileSums(const ColumnGrid& grid, float (&sums)[kSums][kN],
                                     double* tile_sums) {
  const ColumnThread<kN> thread(grid);
  const int64_t first = thread.column - static_cast<int64_t>(threadIdx.x % grid.width) * kN;
  double* const of_tile = tile_sums + kSums * thread.tile * grid.columns;
  AddUpRows(grid.width, sums, [&](int k, int64_t j, double total) {
    if (first + j < grid.columns) of_tile[k * grid.columns + first + j] = total;
  });
}

// Returns the bytes of two sums of each tile's columns.
inline size_t TileSumsBytes(const ColumnGrid& grid) {
  return static_cast<size_t>(2 * grid.tiles * grid.columns) * sizeof(double);
}

// Columns per block of the second kernel, whose blocks have 256 threads.
constexpr int kColumnsOfBlock = 8;

// Sums of tiles in memory. Each sum has `columns` elements, and those of a tile begin `step`
// elements behind those of the tile before.
struct TileSums {
  const double* sums;
  int64_t tiles, columns, step;
};

// Adds up the totals of one column over all tiles; `block` is the number of the block among those
// of the matrix. Every thread calls it; returns true in the threads that have a column.
template <int kSums>
__device__ inline bool SumTiles(const TileSums& of, int64_t block, int64_t* column,
                                double (&totals)[kSums]) {
  __shared__ double of_warps[kSums][kWarps][kColumnsOfBlock];
  const unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
  *column = block * kColumnsOfBlock + threadIdx.x % kColumnsOfBlock;
  double sums[kSums] = {};
  if (*column < of.columns) {
    constexpr int64_t kStep = kThreads / kColumnsOfBlock;
    constexpr int kAhead = 8;  // tiles that are read before the first of them is added
    for (int64_t first = threadIdx.x / kColumnsOfBlock; first < of.tiles; first += kAhead * kStep) {
      double values[kAhead][kSums] = {};
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int64_t tile = first + i * kStep;
        if (tile < of.tiles) {
#pragma unroll
          for (int k = 0; k < kSums; ++k) {
            values[i][k] = of.sums[tile * of.step + k * of.columns + *column];
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
#pragma unroll
        for (int k = 0; k < kSums; ++k) sums[k] += values[i][k];
      }
    }
  }
  for (int k = 0; k < kSums; ++k) {
    for (int distance = kWarpThreads / 2; distance >= kColumnsOfBlock; distance /= 2) {
      sums[k] += __shfl_xor_sync(kWholeWarp, sums[k], distance);
    }
    if (lane < kColumnsOfBlock) of_warps[k][warp][lane] = sums[k];
  }
  __syncthreads();
  if (threadIdx.x >= kColumnsOfBlock || *column >= of.columns) return false;
  for (int k = 0; k < kSums; ++k) {
    totals[k] = 0;
    for (int w = 0; w < kWarps; ++w) totals[k] += of_warps[k][w][threadIdx.x];
  }
  return true;
}

}  // namespace thinwire::cuda
