// Products of a tall matrix with few columns, and of few columns with each other, for low_rank. The
// order of every sum is fixed, so results have equal bits on every SIMD target.
#pragma once

#include <cstddef>

namespace thinwire {

// Block of `rows` rows, row-major, of a matrix of `columns` columns.
struct RowBlock {
  const float* values = nullptr;
  size_t rows = 0;
  size_t columns = 0;
};

// Columns one after the other, `stride` elements from one to the next.
struct Columns {
  float* values = nullptr;
  size_t stride = 0;
  size_t count = 0;
};

// Sizes of padded Columns, as MultiplyByFactor needs them: padded with zeros to whole groups of
// eight elements, and to a number of columns that is a multiple of four.
constexpr size_t PaddedElements(size_t columns) { return (columns + 7) / 8 * 8; }
constexpr size_t PaddedCount(size_t count) { return (count + 3) / 4 * 4; }

// Computes p = m q; column j of p gets m.rows elements. q has padded columns of m.columns elements.
// Each sum consists of eight sums, each over every eighth product, which are added up pairwise.
void MultiplyByFactor(const RowBlock& m, const Columns& q, const Columns& p);

// Computes q = m^T p; column j of q gets m.columns elements. Products are added from the first row
// to the last.
void MultiplyTransposed(const RowBlock& m, const Columns& p, const Columns& q);

// Computes m[i][c] = p[i][0] q[0][c] + p[i][1] q[1][c] + ..., from left to right. p has q.count
// factors of each row, one row after the other; q has columns of `columns` elements.
void MultiplyFactors(const float* p, size_t rows, const Columns& q, size_t columns, float* m);

}  // namespace thinwire
