#include "compress/low_rank_matrices.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "base/random.h"
#include "compress/layout.h"
#include "compress/refusals.h"

namespace thinwire {
namespace {

// Returns entry c of column j of a fresh start: the sum of four uniform numbers, with variance 1 in
// all.
float FreshStart(int64_t c, int64_t j) {
  static const uint64_t key = RandomKey(0, "low_rank");
  const uint64_t block = static_cast<uint64_t>(j) << 32 | static_cast<uint64_t>(c);
  int32_t sum = 0;
  for (const uint32_t number : Philox(key, block)) sum += static_cast<int32_t>(number >> 8);
  constexpr float kRootOf3 = 1.73205081f;
  return static_cast<float>(sum - (1 << 25)) * 0x1p-24f * kRootOf3;
}

}  // namespace

LowRankMatrices LowRankMatricesOf(const Shape& shape, const CodecSpec& spec) {
  const int64_t total = shape.elements();
  if (total == 0) return {0, 0, 0, spec.rank};
  const int64_t columns = shape.rank() > 1 ? shape[shape.rank() - 1] : 1;
  const int64_t count = spec.per_sample && shape.rank() > 0 ? shape[0] : 1;
  return {count, total / columns / count, columns, spec.rank};
}

Error LowRankMatricesOf(const TensorView& x, const CodecSpec& spec, LowRankMatrices* matrices) {
  const LowRankMatrices m = *matrices = LowRankMatricesOf(ShapeOf(x), spec);
  if (m.count == 0 || m.rank < std::min(m.rows, m.columns)) return Error{};
  return MakeError(kRefused, "low_rank: rank %u of a matrix of %lld x %lld, want less than both",
                   spec.rank, static_cast<long long>(m.rows), static_cast<long long>(m.columns));
}

Error LowRankMatrixOf(const TensorView& x, const CodecSpec& spec, LowRankMatrices* matrix) {
  CodecSpec whole = spec;
  whole.per_sample = false;
  return LowRankMatricesOf(x, whole, matrix);
}

void LowRankStartColumn(const float* warm_start, int64_t columns, int64_t rank, int64_t j,
                        float* to) {
  float largest = 0;
  for (int64_t c = 0; warm_start != nullptr && c < columns; ++c) {
    to[c] = warm_start[c * rank + j];
    largest = std::max(largest, std::fabs(to[c]));
  }
  const bool fresh = !(largest > 0) || !std::isfinite(largest);
  for (int64_t c = 0; fresh && c < columns; ++c) {
    to[c] = FreshStart(c, j);
    largest = std::max(largest, std::fabs(to[c]));
  }
  int exponent;
  std::frexp(largest, &exponent);
  for (int64_t c = 0; c < columns; ++c) to[c] = std::ldexp(to[c], -exponent);
}

Error CheckLowRankFactor(float largest, int64_t rank) {
  // Entries of P are at most 1, so that no sum over the rank can overflow.
  const float limit = FLT_MAX / static_cast<float>(2 * rank);
  if (largest <= limit) return Error{};
  return MakeError(kRefused, "low_rank: factor of %g, want at most %g",
                   static_cast<double>(largest), static_cast<double>(limit));
}

Error DropLowRankLift(float lift, const LowRankMatrices& matrix, float* p) {
  float largest = 0;
  for (int64_t i = 0; i < matrix.p_floats(); ++i) {
    p[i] /= lift;
    largest = std::max(largest, std::fabs(p[i]));
  }
  return CheckLowRankFactor(largest, matrix.rank);
}

}  // namespace thinwire
