#include <cuda_runtime.h>

#include <algorithm>

#include "compress/cuda/extremes.cuh"
#include "compress/cuda/extremes.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kShort = 2048;    // most elements of a scope that part of a warp reads
constexpr int64_t kColumns = 1024;  // columns of a block over strided scopes, four per thread
// Blocks per multiprocessor, if a tensor has enough elements: many, so that the last ones end
// together; fewer where each block ends with an atomic operation per column.
constexpr int64_t kLongBlocksEach = 32, kStridedBlocksEach = 8;
constexpr int64_t kLeastChunk = 4096;  // least elements worth a block

__device__ int64_t EndOf(const Scopes& scopes, int64_t scope) {
  return min((scope + 1) * scopes.elements, scopes.total);
}

// Finds extremes of scopes of few elements, with `lanes` threads (4 to 32, a power of two) each.
template <typename T>
__global__ void ShortKernel(const T* x, Scopes scopes, unsigned lanes, Counted counted,
                            Extremes* extremes) {
  const unsigned lane = threadIdx.x % lanes;
  const int64_t scope =
      static_cast<int64_t>(blockIdx.x) * (blockDim.x / lanes) + threadIdx.x / lanes;
  Extremes e = {};
  if (scope < scopes.count) {
    e = ExtremesOfShare(x, scope * scopes.elements, EndOf(scopes, scope), lane, lanes, counted);
  }
  for (unsigned distance = lanes / 2; distance > 0; distance /= 2) {
    e.greatest = max(e.greatest, __shfl_xor_sync(kWholeWarp, e.greatest, distance));
    e.least = max(e.least, __shfl_xor_sync(kWholeWarp, e.least, distance));
  }
  if (scope < scopes.count && lane == 0) extremes[scope] = e;
}

// Finds extremes with a block per chunk of a scope. `extremes` are zeros before.
template <typename T>
__global__ void LongKernel(const T* x, Scopes scopes, int64_t chunk, int64_t chunks_each,
                           Counted counted, Extremes* extremes) {
  const int64_t scope = blockIdx.x / chunks_each;
  const int64_t begin = scope * scopes.elements + (blockIdx.x - scope * chunks_each) * chunk;
  const int64_t end = min(begin + chunk, EndOf(scopes, scope));
  Extremes e = {};
  if (begin < end) e = ExtremesOfShare(x, begin, end, threadIdx.x, blockDim.x, counted);
  e.greatest = BlockReduce<Greatest>(e.greatest);
  e.least = BlockReduce<Greatest>(e.least);
  if (threadIdx.x == 0) AddShared(e, &extremes[scope]);
}

// Strided scopes as columns of a matrix. Its rows are `period` elements long: a multiple of the
// number of scopes, so that a column lies in one scope, and of four. A block reads kColumns columns
// of `rows_each` rows. `extremes` are zeros before.
struct Columns {
  int64_t period = 0, tiles = 0;  // tiles of kColumns in a row
  int64_t rows = 0, rows_each = 0;
};

// Adds rows [row, end) of the four columns from `column` on to e, kExtremesBatch rows at a time.
template <typename T>
__device__ void AddColumns(const T* x, const Scopes& scopes, const Columns& columns, int64_t column,
                           int64_t row, int64_t end, Counted counted, Extremes (&e)[4]) {
  const int64_t period = columns.period;
  int64_t i = row * period + column;
  for (; row + kExtremesBatch <= end && i + (kExtremesBatch - 1) * period + 4 <= scopes.total;
       row += kExtremesBatch, i += kExtremesBatch * period) {
    float v[kExtremesBatch][4];
    LoadVectors(x + i, period, v);
    for (int j = 0; j < kExtremesBatch; ++j) {
      for (int k = 0; k < 4; ++k) AddValue(v[j][k], counted, &e[k]);
    }
  }
  for (; row < end; ++row, i += period) {
    float v[4];
    LoadVector(x + i, scopes.total - i, v);
    for (int k = 0; k < 4; ++k) {
      if (i + k < scopes.total) AddValue(v[k], counted, &e[k]);
    }
  }
}

// Finds extremes of strided scopes. Blocks gather in shared memory, so that they need one atomic
// operation in device memory per slot only.
template <typename T>
__global__ void StridedKernel(const T* x, Scopes scopes, Columns columns, Counted counted,
                              Extremes* extremes) {
  // Each scope has a slot if there are few; otherwise each column has one.
  __shared__ Extremes slots[kColumns];
  const int64_t tile = blockIdx.x % columns.tiles, rows = blockIdx.x / columns.tiles;
  const int64_t first = tile * kColumns, column = first + 4 * static_cast<int64_t>(threadIdx.x);
  const bool few = scopes.count <= kColumns;
  for (int64_t s = threadIdx.x; s < kColumns; s += blockDim.x) slots[s] = {};
  __syncthreads();
  if (column < columns.period) {
    Extremes e[4] = {};
    const int64_t row = rows * columns.rows_each;
    AddColumns(x, scopes, columns, column, row, min(row + columns.rows_each, columns.rows), counted,
               e);
    for (int k = 0; k < 4; ++k) {
      AddShared(e[k], &slots[few ? (column + k) % scopes.count : column + k - first]);
    }
  }
  __syncthreads();
  for (int64_t s = threadIdx.x; s < kColumns; s += blockDim.x) {
    const int64_t scope = few ? s : (first + s) % scopes.count;
    const bool is_used = few ? s < scopes.count : first + s < columns.period;
    if (is_used) AddShared(slots[s], &extremes[scope]);
  }
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename T>
Error SubmitShort(CudaDevice* device, const T* x, const Scopes& scopes, Counted counted,
                  Extremes* extremes) {
  unsigned lanes = 4;
  while (lanes < kWarpThreads && 4 * kExtremesBatch * lanes < scopes.elements) lanes *= 2;
  return Launch(device, BlocksFor(scopes.count, kThreads / lanes), dim3(kThreads), ShortKernel<T>,
                x, scopes, lanes, counted, extremes);
}

template <typename T>
Error SubmitLong(CudaDevice* device, int64_t blocks, const T* x, const Scopes& scopes,
                 Counted counted, Extremes* extremes) {
  // Chunks consist of whole vectors, so that only the scope's own ends are ragged.
  const int64_t chunk = std::max(CeilDiv(CeilDiv(scopes.total, blocks), 4) * 4, kLeastChunk);
  const int64_t chunks_each = CeilDiv(scopes.elements, chunk);
  return Launch(device, BlocksFor(scopes.count * chunks_each, 1), dim3(kThreads), LongKernel<T>, x,
                scopes, chunk, chunks_each, counted, extremes);
}

template <typename T>
Error SubmitStrided(CudaDevice* device, int64_t blocks, const T* x, const Scopes& scopes,
                    Counted counted, Extremes* extremes) {
  static_assert(kColumns == 4 * kThreads);
  Columns columns;
  columns.period = scopes.count;
  while (columns.period % 4 != 0) columns.period += scopes.count;
  columns.period *= CeilDiv(kColumns, columns.period);
  columns.tiles = CeilDiv(columns.period, kColumns);
  columns.rows = CeilDiv(scopes.total, columns.period);
  const int64_t row_blocks = std::clamp<int64_t>(blocks / columns.tiles, 1, columns.rows);
  columns.rows_each = std::max<int64_t>(CeilDiv(columns.rows, row_blocks), kExtremesBatch);
  const int64_t all = columns.tiles * CeilDiv(columns.rows, columns.rows_each);
  return Launch(device, BlocksFor(all, 1), dim3(kThreads), StridedKernel<T>, x, scopes, columns,
                counted, extremes);
}

template <typename T>
Error Submit(CudaDevice* device, const T* x, const Scopes& scopes, Counted counted,
             Extremes* extremes) {
  if (!scopes.strided && scopes.elements <= kShort) {
    return SubmitShort(device, x, scopes, counted, extremes);
  }
  RETURN_ERROR(device->SubmitZeros(extremes, scopes.count * sizeof(Extremes)));
  const int64_t multiprocessors = device->multiprocessors();
  return scopes.strided
             ? SubmitStrided(device, kStridedBlocksEach * multiprocessors, x, scopes, counted,
                             extremes)
             : SubmitLong(device, kLongBlocksEach * multiprocessors, x, scopes, counted, extremes);
}

}  // namespace

Error SubmitExtremes(CudaDevice* device, const TensorView& x, const Scopes& scopes, Counted counted,
                     Extremes* extremes) {
  if (scopes.count == 0) return Error{};
  return WithTypedData(
      x, [&](const auto* elements) { return Submit(device, elements, scopes, counted, extremes); });
}

}  // namespace thinwire
