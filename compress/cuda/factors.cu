#include <type_traits>

#include "compress/cuda/factors.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kTile = 4;  // columns of a factor that are computed together

__device__ uint32_t MagnitudeOf(float x) { return __float_as_uint(x) & kMagnitudeMask; }

// Returns column k of a tile; those behind the last repeat it.
__device__ int64_t ColumnOf(int64_t tile, int k, int64_t rank) {
  const int64_t j = tile * kTile + k;
  return j < rank ? j : rank - 1;
}

// Threads per row: each adds up every eighth product, then they add pairwise, as on the CPU.
constexpr unsigned kSums = 8;
constexpr unsigned kRowsOfBlock = kThreads / kSums;

// Computes, in every thread of the row's eight, the products of a row with the columns of S that
// make a tile, times `lift`. Returns the largest magnitude of the thread's entries.
template <typename T>
__device__ uint32_t RowTimesTile(const T* row, const LowRankMatrices& m, const float* s,
                                 int64_t tile, float lift, float (&products)[kTile]) {
  const float* column[kTile];
  for (int k = 0; k < kTile; ++k) {
    column[k] = s + ColumnOf(tile, k, m.rank) * m.columns;
    products[k] = 0;
  }
  uint32_t largest = 0;
  for (int64_t c = threadIdx.x % kSums; c < m.columns; c += kSums) {
    const float entry = Load(row + c);
    const uint32_t magnitude = MagnitudeOf(entry);
    largest = magnitude > largest ? magnitude : largest;
    for (int k = 0; k < kTile; ++k) products[k] += entry * lift * column[k][c];
  }
  for (int k = 0; k < kTile; ++k) {
    for (unsigned distance = kSums / 2; distance > 0; distance /= 2) {
      products[k] += __shfl_xor_sync(kWholeWarp, products[k], distance);
    }
  }
  return largest;
}

// Multiplies M by S, a block per kRowsOfBlock rows. The first time M is taken as it is and its
// largest entry is found; the second time only matrices that need a lift are multiplied again.
template <typename T>
__global__ void ByFactorKernel(const T* x, LowRankMatrices m, int64_t blocks_of_matrix,
                               const float* s, float* p, bool lifted, LowRankExtremes* extremes) {
  const int64_t matrix = blockIdx.x / blocks_of_matrix;
  const int64_t first = blockIdx.x % blocks_of_matrix * kRowsOfBlock;
  const float lift = lifted ? LowRankLift(extremes[matrix].matrix) : 1.0f;
  if (lifted && lift == 1) return;
  const int64_t row = first + threadIdx.x / kSums;
  const bool is_row = row < m.rows;
  const T* const entries = x + (matrix * m.rows + (is_row ? row : m.rows - 1)) * m.columns;
  uint32_t largest = 0;
  for (int64_t tile = 0; tile * kTile < m.rank; ++tile) {
    float products[kTile];
    largest = RowTimesTile(entries, m, s + matrix * m.q_floats(), tile, lift, products);
    for (int k = 0; k < kTile && tile * kTile + k < m.rank; ++k) {
      const int64_t column = matrix * m.rank + tile * kTile + k;
      if (is_row && threadIdx.x % kSums == 0) p[column * m.rows + row] = products[k];
    }
  }
  if (lifted) return;
  largest = BlockReduce<Greatest>(largest);
  if (threadIdx.x == 0) atomicMax(&extremes[matrix].matrix, largest);
}

// Multiplies M^T by P, with a thread per column of M, tile of P's columns and part of M's rows.
template <typename T>
__global__ void TransposedKernel(const T* x, LowRankMatrices m, int64_t parts, const float* p,
                                 const LowRankExtremes* extremes, double* partial) {
  const int64_t tiles = (m.rank + kTile - 1) / kTile;
  int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= m.count * parts * tiles * m.columns) return;
  const int64_t c = i % m.columns;
  i /= m.columns;
  const int64_t tile = i % tiles;
  i /= tiles;
  const int64_t part = i % parts, matrix = i / parts;
  const int64_t block_rows = LowRankBlockRows(m.columns);
  const int64_t blocks = (m.rows + block_rows - 1) / block_rows;
  const int64_t end_block = blocks * (part + 1) / parts;
  const float lift = LowRankLift(extremes[matrix].matrix);
  const T* const entries = x + matrix * m.rows * m.columns + c;
  const float* column[kTile];
  for (int k = 0; k < kTile; ++k) {
    column[k] = p + (matrix * m.rank + ColumnOf(tile, k, m.rank)) * m.rows;
  }
  double sums[kTile] = {};
  for (int64_t block = blocks * part / parts; block < end_block; ++block) {
    const int64_t end = (block + 1) * block_rows < m.rows ? (block + 1) * block_rows : m.rows;
    float of_block[kTile] = {};
#pragma unroll 4
    for (int64_t row = block * block_rows; row < end; ++row) {
      const float entry = Load(entries + row * m.columns) * lift;
      for (int k = 0; k < kTile; ++k) of_block[k] += entry * column[k][row];
    }
    for (int k = 0; k < kTile; ++k) sums[k] += of_block[k];
  }
  for (int k = 0; k < kTile && tile * kTile + k < m.rank; ++k) {
    partial[((matrix * parts + part) * m.rank + tile * kTile + k) * m.columns + c] = sums[k];
  }
}

// Adds up the parts, with a thread per entry of Q and a row of blocks per matrix.
__global__ void AddPartsKernel(LowRankMatrices m, int64_t blocks_of_matrix, int64_t parts,
                               const double* partial, float* payload, LowRankExtremes* extremes) {
  const int64_t matrix = blockIdx.x / blocks_of_matrix;
  const int64_t i = blockIdx.x % blocks_of_matrix * blockDim.x + threadIdx.x;
  float q = 0;
  if (i < m.q_floats()) {
    double sum = 0;
    for (int64_t part = 0; part < parts; ++part) {
      sum += partial[(matrix * parts + part) * m.q_floats() + i];
    }
    q = static_cast<float>(sum / LowRankLift(extremes[matrix].matrix));
    float* const to = payload + matrix * (m.p_floats() + m.q_floats()) + m.p_floats();
    to[i % m.columns * m.rank + i / m.columns] = q;
  }
  const uint32_t largest = BlockReduce<Greatest>(MagnitudeOf(q));
  if (threadIdx.x == 0) atomicMax(&extremes[matrix].factor, largest);
}

// Copies P, [count, rank, rows], into the payloads as [rows, rank], a thread per entry.
__global__ void StoreFactorKernel(LowRankMatrices m, const float* p, float* payload) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= m.count * m.p_floats()) return;
  const int64_t matrix = i / m.p_floats(), entry = i % m.p_floats();
  const int64_t row = entry / m.rank, j = entry % m.rank;
  payload[matrix * (m.p_floats() + m.q_floats()) + entry] = p[(matrix * m.rank + j) * m.rows + row];
}

// Copies Q from the payload to q, [count, rank, columns].
__global__ void LoadFactorKernel(LowRankMatrices m, const float* payload, float* q) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= m.count * m.q_floats()) return;
  const int64_t matrix = i / m.q_floats(), entry = i % m.q_floats();
  const int64_t j = entry / m.columns, c = entry % m.columns;
  const float* const from = payload + matrix * (m.p_floats() + m.q_floats()) + m.p_floats();
  q[i] = from[c * m.rank + j];
}

// Tile of a thread: kRows rows of kColumns columns.
constexpr int kRows = 4, kColumns = 4;

// Computes products[r][k] = p[row + r][0] q[0][c + k] + ..., from left to right. Rows behind the
// last repeat it; only n columns exist.
__device__ void MultiplyTile(const LowRankMatrices& m, const float* p, const float* q, int64_t row,
                             int64_t n, float (&products)[kRows][kColumns]) {
  for (int64_t j = 0; j < m.rank; ++j) {
    float of_q[kColumns];
    LoadVector<kColumns>(q + j * m.columns, n, of_q);
    for (int r = 0; r < kRows; ++r) {
      const float of_p = p[(row + r < m.rows ? row + r : m.rows - 1) * m.rank + j];
      for (int k = 0; k < kColumns; ++k) {
        const float product = of_p * of_q[k];
        products[r][k] = j == 0 ? product : products[r][k] + product;
      }
    }
  }
}

// Writes M and checks that it is finite. Every entry of both factors is part of some product, which
// is not finite unless they are.
template <typename T>
__global__ void FactorsKernel(LowRankMatrices m, const float* payload, const float* q, T* x,
                              uint32_t* nonfinite) {
  const int64_t column_tiles = (m.columns + kColumns - 1) / kColumns;
  const int64_t row_tiles = (m.rows + kRows - 1) / kRows;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const bool is_tile = i < m.count * row_tiles * column_tiles;
  bool is_finite = true;
  if (is_tile) {
    const int64_t c = i % column_tiles * kColumns, n = m.columns - c;
    const int64_t row = i / column_tiles % row_tiles * kRows;
    const int64_t matrix = i / column_tiles / row_tiles;
    float products[kRows][kColumns] = {};
    MultiplyTile(m, payload + matrix * (m.p_floats() + m.q_floats()), q + matrix * m.q_floats() + c,
                 row, n, products);
    for (int r = 0; r < kRows && row + r < m.rows; ++r) {
      for (int k = 0; k < kColumns && k < n; ++k) {
        is_finite = is_finite && MagnitudeOf(products[r][k]) < kInfinityBits;
      }
      StoreVector<kColumns>(products[r], n, x + (matrix * m.rows + row + r) * m.columns + c);
    }
  }
  if (__syncthreads_or(!is_finite) && threadIdx.x == 0) atomicOr(nonfinite, 1u);
}

int64_t Blocks(int64_t n, int64_t of) { return (n + of - 1) / of; }

template <typename T>
Error LaunchByFactor(CudaDevice* device, const T* x, const LowRankMatrices& m, const float* s,
                     float* p, LowRankExtremes* extremes) {
  const int64_t blocks = Blocks(m.rows, kRowsOfBlock);
  for (const bool lifted : {false, true}) {
    RETURN_ERROR(Launch(device, dim3(static_cast<unsigned>(m.count * blocks)), dim3(kThreads),
                        ByFactorKernel<T>, x, m, blocks, s, p, lifted, extremes));
  }
  return Error{};
}

template <typename T>
Error LaunchTransposed(CudaDevice* device, const T* x, const LowRankMatrices& m, const float* p,
                       const LowRankExtremes* extremes, double* partial) {
  const int64_t parts = TransposedParts(m);
  const int64_t threads = m.count * parts * Blocks(m.rank, kTile) * m.columns;
  return Launch(device, BlocksFor(threads, kThreads), dim3(kThreads), TransposedKernel<T>, x, m,
                parts, p, extremes, partial);
}

}  // namespace

Error MultiplyByFactor(CudaDevice* device, const TensorView& x, const LowRankMatrices& matrices,
                       const float* s, float* p, LowRankExtremes* extremes) {
  return WithTypedData(x, [&](const auto* elements) {
    return LaunchByFactor(device, elements, matrices, s, p, extremes);
  });
}

// Returns a number of parts with enough threads to keep memory busy, but with partial sums that are
// small beside M.
int64_t TransposedParts(const LowRankMatrices& matrices) {
  constexpr int64_t kWantedThreads = int64_t{1} << 18;
  const int64_t of_part = matrices.count * Blocks(matrices.rank, kTile) * matrices.columns;
  const int64_t blocks = Blocks(matrices.rows, LowRankBlockRows(matrices.columns));
  const int64_t wanted = Blocks(kWantedThreads, of_part);
  return wanted < blocks ? wanted : blocks;
}

Error MultiplyTransposed(CudaDevice* device, const TensorView& x, const LowRankMatrices& matrices,
                         const float* p, double* partial, float* payload,
                         LowRankExtremes* extremes) {
  RETURN_ERROR(WithTypedData(x, [&](const auto* elements) {
    return LaunchTransposed(device, elements, matrices, p, extremes, partial);
  }));
  const int64_t blocks = Blocks(matrices.q_floats(), kThreads);
  return Launch(device, dim3(static_cast<unsigned>(matrices.count * blocks)), dim3(kThreads),
                AddPartsKernel, matrices, blocks, TransposedParts(matrices), partial, payload,
                extremes);
}

Error StoreFactor(CudaDevice* device, const LowRankMatrices& matrices, const float* p,
                  float* payload) {
  return Launch(device, BlocksFor(matrices.count * matrices.p_floats(), kThreads), dim3(kThreads),
                StoreFactorKernel, matrices, p, payload);
}

Error MultiplyFactors(CudaDevice* device, const float* payload, const LowRankMatrices& matrices,
                      float* q, const TensorView& x, uint32_t* nonfinite) {
  RETURN_ERROR(Launch(device, BlocksFor(matrices.count * matrices.q_floats(), kThreads),
                      dim3(kThreads), LoadFactorKernel, matrices, payload, q));
  const int64_t tiles =
      matrices.count * Blocks(matrices.rows, kRows) * Blocks(matrices.columns, kColumns);
  const dim3 blocks = BlocksFor(tiles, kThreads);
  return WithTypedData(x, [&](auto* elements) {
    using T = std::decay_t<decltype(*elements)>;
    return Launch(device, blocks, dim3(kThreads), FactorsKernel<T>, matrices, payload, q, elements,
                  nonfinite);
  });
}

}  // namespace thinwire
