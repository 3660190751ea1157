#include <algorithm>
#include <cmath>

#include "compress/bytes.h"
#include "compress/cpu/blocks.h"
#include "compress/cpu/codecs.h"
#include "compress/cpu/factors.h"
#include "compress/cpu/loops.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/operations.h"
#include "compress/cpu/orthonormal.h"
#include "compress/cpu/scan.h"
#include "compress/half.h"
#include "compress/low_rank_matrices.h"
#include "compress/refusals.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Returns the rows of a block: these fit the first-level cache, but are enough to use the factors
// more than once.
size_t BlockRows(size_t columns) {
  return static_cast<size_t>(LowRankBlockRows(static_cast<int64_t>(columns)));
}

// One matrix of a tensor, and the rank of its factors.
struct Matrix {
  TensorView x;
  int64_t begin = 0;  // its first element in x
  size_t rows = 0;
  size_t columns = 0;
  size_t rank = 0;
};

// Calls visit(first row, block) for each block of rows, multiplied by `lift`. Blocks lie in this
// thread's memory.
template <typename Visit>
void ForEachRows(const Matrix& m, float lift, Visit visit) {
  static thread_local Scratch<float> memory;
  const size_t most = BlockRows(m.columns);
  float* scratch = memory.Get(most * m.columns);
  for (size_t row = 0; row < m.rows; row += most) {
    const size_t rows = std::min(most, m.rows - row);
    const size_t n = rows * m.columns;
    const float* values =
        ReadFloats(m.x, m.begin + static_cast<int64_t>(row * m.columns), n, scratch);
    if (lift != 1) {
      for (size_t i = 0; i < n; ++i) scratch[i] = values[i] * lift;
      values = scratch;
    }
    visit(row, RowBlock{values, rows, m.columns});
  }
}

// Returns the columns from which the iteration starts, padded for MultiplyByFactor.
Columns Start(const Matrix& m, const float* warm_start) {
  static thread_local Scratch<float> memory;
  const size_t stride = PaddedElements(m.columns);
  const size_t padded = PaddedCount(m.rank) * stride;
  float* q = memory.Get(padded);
  std::fill_n(q, padded, 0.0f);
  for (size_t j = 0; j < m.rank; ++j) {
    LowRankStartColumn(warm_start, static_cast<int64_t>(m.columns), static_cast<int64_t>(m.rank),
                       static_cast<int64_t>(j), q + j * stride);
  }
  return {q, stride, m.rank};
}

// Computes P = lift M Q; returns the bits of the largest magnitude in M.
uint32_t Project(const Matrix& m, float lift, const Columns& q, const Columns& p) {
  uint32_t largest = 0;
  ForEachRows(m, lift, [&](size_t row, const RowBlock& block) {
    largest = std::max(largest, LargestMagnitude(block.values, block.rows * block.columns));
    MultiplyByFactor(block, q, {p.values + row, p.stride, p.count});
  });
  return largest;
}

// Computes Q = (lift M)^T P / lift as [columns, rank] at `to`. Blocks are summed in fp64, in order.
float ProjectBack(const Matrix& m, float lift, const Columns& p, uint8_t* to) {
  static thread_local Scratch<double> sums_memory;
  static thread_local Scratch<float> block_memory;
  const size_t n = m.rank * m.columns;
  double* sums = sums_memory.Get(n);
  float* of_block = block_memory.Get(n);
  std::fill_n(sums, n, 0.0);
  ForEachRows(m, lift, [&](size_t row, const RowBlock& block) {
    MultiplyTransposed(block, {p.values + row, p.stride, p.count}, {of_block, m.columns, m.rank});
    for (size_t i = 0; i < n; ++i) sums[i] += of_block[i];
  });
  float largest = 0;
  for (size_t j = 0; j < m.rank; ++j) {
    for (size_t c = 0; c < m.columns; ++c) {
      const float q = static_cast<float>(sums[j * m.columns + c] / lift);
      largest = std::max(largest, std::fabs(q));
      StoreAs(q, to + 4 * (c * m.rank + j));
    }
  }
  return largest;
}

// Returns memory of this thread for P of a matrix, until the next call.
Columns MemoryOfP(const Matrix& m) {
  static thread_local Scratch<float> memory;
  return {memory.Get(m.rows * m.rank), m.rows, m.rank};
}

// Computes P = lift M Q from the start; *largest becomes the largest magnitude in M. If its values
// are so small or large that fp32 would lose sums of products, it is multiplied by a lift and
// projected again.
Error ProjectFromStart(const Matrix& m, const float* warm_start, const Columns& p,
                       uint32_t* largest) {
  const Columns q = Start(m, warm_start);
  *largest = Project(m, 1, q, p);
  if (*largest >= kInfinityBits) return NonFiniteError("low_rank", m.x);
  const float lift = LowRankLift(*largest);
  if (lift != 1) Project(m, lift, q, p);
  return Error{};
}

// Writes P as [rows, rank].
void StoreP(const Columns& p, uint8_t* to) {
  for (size_t i = 0; i < p.stride; ++i) {
    for (size_t j = 0; j < p.count; ++j) {
      StoreAs(p.values[j * p.stride + i], to + 4 * (i * p.count + j));
    }
  }
}

Error EncodeMatrix(const Matrix& m, const float* warm_start, uint8_t* payload) {
  const Columns p = MemoryOfP(m);
  uint32_t largest = 0;
  RETURN_ERROR(ProjectFromStart(m, warm_start, p, &largest));
  const float lift = LowRankLift(largest);
  Orthonormalise(p.values, m.rows, m.rank);
  StoreP(p, payload);
  return CheckLowRankFactor(ProjectBack(m, lift, p, payload + 4 * m.rows * m.rank),
                            static_cast<int64_t>(m.rank));
}

// Returns `n` floats of the payload, which lies at any address, in *memory.
const float* Floats(const uint8_t* payload, size_t n, Scratch<float>* memory) {
  float* floats = memory->Get(n);
  CopyFloats(payload, n, floats);
  return floats;
}

Error DecodeMatrix(const Matrix& m, const uint8_t* payload) {
  static thread_local Scratch<float> p_memory, q_memory, out_memory;
  const uint8_t* from = payload + 4 * m.rows * m.rank;
  float* q = q_memory.Get(m.rank * m.columns);
  for (size_t j = 0; j < m.rank; ++j) {
    for (size_t c = 0; c < m.columns; ++c) {
      q[j * m.columns + c] = LoadAs<float>(from + 4 * (c * m.rank + j));
    }
  }
  uint32_t largest = LargestMagnitude(q, m.rank * m.columns);
  const size_t most = BlockRows(m.columns);
  float* scratch = out_memory.Get(most * m.columns);
  for (size_t row = 0; row < m.rows && largest < kInfinityBits; row += most) {
    const size_t rows = std::min(most, m.rows - row);
    const size_t n = rows * m.columns;
    const float* p = Floats(payload + 4 * row * m.rank, rows * m.rank, &p_memory);
    const int64_t begin = m.begin + static_cast<int64_t>(row * m.columns);
    float* to = FloatsToWrite(m.x, begin, scratch);
    MultiplyFactors(p, rows, {q, m.columns, m.rank}, m.columns, to);
    largest = std::max({largest, LargestMagnitude(p, rows * m.rank), LargestMagnitude(to, n)});
    FinishFloats(m.x, begin, n, scratch);
  }
  if (largest < kInfinityBits) return Error{};
  return MakeError(kRefused, "low_rank: the payload's factors or their product are not finite");
}

Matrix FirstOf(const LowRankMatrices& all, const TensorView& x) {
  return {x, 0, static_cast<size_t>(all.rows), static_cast<size_t>(all.columns),
          static_cast<size_t>(all.rank)};
}

}  // namespace

Error CpuLowRankEncode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                       const PayloadBuffer& payload, int /*threads*/) {
  LowRankMatrices all;
  RETURN_ERROR(LowRankMatricesOf(x, spec, &all));
  *payload.bytes = all.count * all.payload_bytes();
  RETURN_ERROR(CheckCapacity("low_rank", payload.capacity, *payload.bytes));
  const float* warm_start = context.warm_start;
  Matrix m = FirstOf(all, x);
  for (int64_t i = 0; i < all.count; ++i) {
    RETURN_ERROR(EncodeMatrix(m, warm_start, payload.data + i * all.payload_bytes()));
    m.begin += m.rows * m.columns;
    if (warm_start != nullptr) warm_start += all.q_floats();
  }
  return Error{};
}

Error CpuKernels::Project(const CodecSpec& spec, const TensorView& x, const float* start, float* p,
                          float* largest) {
  *largest = 0;
  LowRankMatrices all;
  RETURN_ERROR(LowRankMatrixOf(x, spec, &all));
  if (all.count == 0) return Error{};
  const Matrix m = FirstOf(all, x);
  const Columns columns = MemoryOfP(m);
  uint32_t bits = 0;
  RETURN_ERROR(ProjectFromStart(m, start, columns, &bits));
  *largest = FloatOf(bits);
  StoreP(columns, reinterpret_cast<uint8_t*>(p));
  return DropLowRankLift(LowRankLift(bits), all, p);
}

Error CpuKernels::Reproject(const CodecSpec& spec, const TensorView& x, float largest,
                            const float* p, float* q) {
  LowRankMatrices all;
  RETURN_ERROR(LowRankMatrixOf(x, spec, &all));
  if (all.count == 0) return Error{};
  const Matrix m = FirstOf(all, x);
  const Columns columns = MemoryOfP(m);
  for (size_t i = 0; i < m.rows * m.rank; ++i) {
    columns.values[i % m.rank * m.rows + i / m.rank] = p[i];
  }
  const float lift = LowRankLift(BitsOf(largest));
  return CheckLowRankFactor(ProjectBack(m, lift, columns, reinterpret_cast<uint8_t*>(q)), all.rank);
}

Error CpuLowRankDecode(const PayloadView& payload, const CodecSpec& spec,
                       const KernelContext& /*context*/, const TensorView& x, int /*threads*/) {
  LowRankMatrices all;
  RETURN_ERROR(LowRankMatricesOf(x, spec, &all));
  RETURN_ERROR(CheckPayloadBytes("low_rank", payload.bytes, all.count * all.payload_bytes()));
  Matrix m = FirstOf(all, x);
  for (int64_t i = 0; i < all.count; ++i) {
    RETURN_ERROR(DecodeMatrix(m, payload.data + i * all.payload_bytes()));
    m.begin += m.rows * m.columns;
  }
  return Error{};
}

}  // namespace thinwire
