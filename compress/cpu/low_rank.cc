#include "compress/cpu/low_rank.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "base/random.h"
#include "compress/cpu/blocks.h"
#include "compress/cpu/bytes.h"
#include "compress/cpu/convert.h"
#include "compress/cpu/factors.h"
#include "compress/cpu/half.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/orthonormal.h"
#include "compress/cpu/scan.h"
#include "compress/cpu/scratch.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

// Rows of a block: what fits the first-level cache, but enough to use the factors more than once.
size_t BlockRows(size_t columns) { return std::clamp<size_t>(8192 / columns, 16, 128); }

// One matrix of a tensor and the factors' size.
struct Matrix {
  TensorView x;
  int64_t begin = 0;  // of its elements in x
  size_t rows = 0;
  size_t columns = 0;
  size_t rank = 0;
};

// Calls visit(first row, block) for each block of rows, times `lift`. Memory is this thread's.
template <typename Visit>
void ForEachBlock(const Matrix& m, float lift, Visit visit) {
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

// Entry c of column j of a start that knows nothing: four uniform numbers, of variance 1 together.
float FreshStart(size_t c, size_t j) {
  static const uint64_t key = RandomKey(0, "low_rank");
  int32_t sum = 0;
  for (const uint32_t number : Philox(key, j << 32 | c)) sum += static_cast<int32_t>(number >> 8);
  constexpr float kRootOf3 = 1.73205081f;
  return static_cast<float>(sum - (1 << 25)) * 0x1p-24f * kRootOf3;
}

// Column j of what the iteration starts from, times a power of two so that its largest entry lies
// in [0.5, 1): only its direction matters, and products neither overflow nor vanish. A column of
// zeros knows no direction: it starts afresh.
void StartColumn(const float* warm_start, size_t columns, size_t rank, size_t j, float* to) {
  float largest = 0;
  for (size_t c = 0; warm_start != nullptr && c < columns; ++c) {
    to[c] = warm_start[c * rank + j];
    largest = std::max(largest, std::fabs(to[c]));
  }
  const bool fresh = !(largest > 0) || !std::isfinite(largest);
  for (size_t c = 0; fresh && c < columns; ++c) {
    to[c] = FreshStart(c, j);
    largest = std::max(largest, std::fabs(to[c]));
  }
  int exponent;
  std::frexp(largest, &exponent);
  for (size_t c = 0; c < columns; ++c) to[c] = std::ldexp(to[c], -exponent);
}

Columns Start(const Matrix& m, const float* warm_start) {
  static thread_local Scratch<float> memory;
  const size_t stride = PaddedElements(m.columns);
  const size_t padded = PaddedCount(m.rank) * stride;
  float* q = memory.Get(padded);
  std::fill_n(q, padded, 0.0f);
  for (size_t j = 0; j < m.rank; ++j) {
    StartColumn(warm_start, m.columns, m.rank, j, q + j * stride);
  }
  return {q, stride, m.rank};
}

// P = lift M Q; returns the bits of the largest magnitude in M.
uint32_t Project(const Matrix& m, float lift, const Columns& q, const Columns& p) {
  uint32_t largest = 0;
  ForEachBlock(m, lift, [&](size_t row, const RowBlock& block) {
    largest = std::max(largest, LargestMagnitude(block.values, block.rows * block.columns));
    MultiplyByFactor(block, q, {p.values + row, p.stride, p.count});
  });
  return largest;
}

// Q = (lift M)^T P / lift, [columns, rank] at `to`. Blocks are summed in fp64, in order.
float Reproject(const Matrix& m, float lift, const Columns& p, uint8_t* to) {
  static thread_local Scratch<double> sums_memory;
  static thread_local Scratch<float> block_memory;
  const size_t n = m.rank * m.columns;
  double* sums = sums_memory.Get(n);
  float* of_block = block_memory.Get(n);
  std::fill_n(sums, n, 0.0);
  ForEachBlock(m, lift, [&](size_t row, const RowBlock& block) {
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

// What keeps the largest value far from the ends of fp32, where sums of products would be lost.
float LiftFor(uint32_t largest) {
  const float value = FloatOf(largest);
  if (value == 0 || (value >= 0x1p-60f && value <= 0x1p60f)) return 1;
  return value < 1 ? 0x1p64f : 0x1p-64f;
}

Error EncodeMatrix(const Matrix& m, const float* warm_start, uint8_t* payload) {
  static thread_local Scratch<float> memory;
  const Columns q = Start(m, warm_start);
  const Columns p{memory.Get(m.rows * m.rank), m.rows, m.rank};
  const uint32_t largest = Project(m, 1, q, p);
  if (largest >= kInfinityBits) return NonFiniteError("low_rank", m.x);
  const float lift = LiftFor(largest);
  if (lift != 1) Project(m, lift, q, p);
  Orthonormalise(p.values, m.rows, m.rank);
  for (size_t i = 0; i < m.rows; ++i) {
    for (size_t j = 0; j < m.rank; ++j) {
      StoreAs(p.values[j * m.rows + i], payload + 4 * (i * m.rank + j));
    }
  }
  const float largest_factor = Reproject(m, lift, p, payload + 4 * m.rows * m.rank);
  // Entries of P are at most 1, so that no sum over the rank can overflow.
  const float limit = FLT_MAX / static_cast<float>(2 * m.rank);
  if (largest_factor <= limit) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument, "low_rank: factor of %g, want at most %g",
                   static_cast<double>(largest_factor), static_cast<double>(limit));
}

// Memory for `n` floats of the payload, which lies at any address.
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
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "low_rank: the payload's factors or their product are not finite");
}

// The first matrix of x. InvalidArgument if its rank is no less than what it has by itself.
Error FirstMatrix(const TensorView& x, const CodecSpec& spec, Matrix* m, int64_t* count) {
  const MatrixView view = MatricesOf(x, spec.per_sample);
  *count = view.count;
  if (view.count > 0 && spec.rank >= std::min(view.rows, view.columns)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "low_rank: rank %u of a matrix of %lld x %lld, want less than both", spec.rank,
                     static_cast<long long>(view.rows), static_cast<long long>(view.columns));
  }
  *m = {x, 0, static_cast<size_t>(view.rows), static_cast<size_t>(view.columns), spec.rank};
  return Error{};
}

size_t PayloadBytes(const Matrix& m) { return 4 * m.rank * (m.rows + m.columns); }

}  // namespace

Error CpuLowRankEncode(const TensorView& x, const CodecSpec& spec, const float* warm_start,
                       uint8_t* payload, size_t capacity, size_t* bytes) {
  Matrix m;
  int64_t count;
  Error error = FirstMatrix(x, spec, &m, &count);
  if (!error.ok()) return error;
  *bytes = count * PayloadBytes(m);
  if (capacity < *bytes) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "low_rank: payload memory of %zu bytes, want %zu", capacity, *bytes);
  }
  for (int64_t i = 0; i < count && error.ok(); ++i) {
    error = EncodeMatrix(m, warm_start, payload + i * PayloadBytes(m));
    m.begin += m.rows * m.columns;
    if (warm_start != nullptr) warm_start += m.columns * m.rank;
  }
  return error;
}

Error CpuLowRankDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                       const TensorView& x) {
  Matrix m;
  int64_t count;
  Error error = FirstMatrix(x, spec, &m, &count);
  if (!error.ok()) return error;
  if (bytes != count * PayloadBytes(m)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "low_rank: payload of %zu bytes, want %zu",
                     bytes, count * PayloadBytes(m));
  }
  for (int64_t i = 0; i < count && error.ok(); ++i) {
    error = DecodeMatrix(m, payload + i * PayloadBytes(m));
    m.begin += m.rows * m.columns;
  }
  return error;
}

}  // namespace thinwire
