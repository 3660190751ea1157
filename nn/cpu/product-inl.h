// Products of small matrices that are in the cache, for every Highway target.

#if defined(THINWIRE_NN_CPU_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_NN_CPU_PRODUCT_INL_H_
#undef THINWIRE_NN_CPU_PRODUCT_INL_H_
#else
#define THINWIRE_NN_CPU_PRODUCT_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// Rows of a product that are computed together, so that each load of b serves all of them.
inline constexpr int64_t kStrip = 4;
// Vectors of a row that are computed together: as many as there are registers for.
inline constexpr int kMostVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// A matrix whose element (m, k) is data[m row + k column].
struct Factor {
  const float* data;
  int64_t row, column;

  const float* At(int64_t m) const { return data + m * row; }
};

// Computes kVectors vectors of each of kRows rows: c = a b, or c += a b. All sums stay in
// registers; each element of a is broadcast and multiplied by vectors of b.
template <int kRows, int kVectors, bool kAdds>
HWY_INLINE void RowsOfVectors(int64_t inner, const Factor& a, const float* b, int64_t b_row,
                              float* c, int64_t c_row) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  FloatVec sums[kRows][kVectors];
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kVectors; ++v) {
      sums[m][v] = kAdds ? hn::LoadU(d, c + m * c_row + v * lanes) : hn::Zero(d);
    }
  }
  for (int64_t k = 0; k < inner; ++k) {
    FloatVec row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, b + k * b_row + v * lanes);
    for (int m = 0; m < kRows; ++m) {
      const FloatVec factor = hn::Set(d, a.data[m * a.row + k * a.column]);
      for (int v = 0; v < kVectors; ++v) sums[m][v] = hn::MulAdd(factor, row[v], sums[m][v]);
    }
  }
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[m][v], d, c + m * c_row + v * lanes);
  }
}

// Computes kStrip rows of c = a b, or c += a b.   a: [kStrip, inner]   b: [inner, columns]
// `columns` is a multiple of 16. Sums run along `inner` in order.
template <bool kAdds>
HWY_INLINE void Strip(int64_t columns, int64_t inner, const Factor& a, const float* b,
                      int64_t b_row, float* c, int64_t c_row) {
  const int64_t lanes = hn::Lanes(FloatTag());
  int64_t j = 0;
  for (; j + kMostVectors * lanes <= columns; j += kMostVectors * lanes) {
    RowsOfVectors<kStrip, kMostVectors, kAdds>(inner, a, b + j, b_row, c + j, c_row);
  }
  for (; j < columns; j += lanes) {
    RowsOfVectors<kStrip, 1, kAdds>(inner, a, b + j, b_row, c + j, c_row);
  }
}

// Computes kVectors vectors of each row. The fewer vectors of a row, the more rows are computed
// together, so that there are enough independent sums to keep the multipliers busy.
template <int kVectors, bool kAdds>
HWY_INLINE void ColumnOfVectors(int64_t rows, int64_t inner, const Factor& a, const float* b,
                                int64_t b_row, float* c, int64_t c_row) {
  constexpr int kRows = kStrip * kMostVectors / kVectors;
  int64_t m = 0;
  for (; m + kRows <= rows; m += kRows) {
    RowsOfVectors<kRows, kVectors, kAdds>(inner, {a.At(m), a.row, a.column}, b, b_row,
                                          c + m * c_row, c_row);
  }
  for (; m < rows; m += kStrip) {
    RowsOfVectors<kStrip, kVectors, kAdds>(inner, {a.At(m), a.row, a.column}, b, b_row,
                                           c + m * c_row, c_row);
  }
}

// Computes c = a b, or c += a b.   a: [rows, inner]   b: [inner, columns]   `rows` is a multiple of
// kStrip, `columns` of 16. Sums run along `inner` in order.
template <bool kAdds>
HWY_INLINE void Product(int64_t rows, int64_t columns, int64_t inner, const Factor& a,
                        const float* b, int64_t b_row, float* c, int64_t c_row) {
  const int64_t lanes = hn::Lanes(FloatTag());
  int64_t j = 0;
  for (; j + kMostVectors * lanes <= columns; j += kMostVectors * lanes) {
    ColumnOfVectors<kMostVectors, kAdds>(rows, inner, a, b + j, b_row, c + j, c_row);
  }
  if (j + 2 * lanes <= columns) {
    ColumnOfVectors<2, kAdds>(rows, inner, a, b + j, b_row, c + j, c_row);
    j += 2 * lanes;
  }
  if (j < columns) ColumnOfVectors<1, kAdds>(rows, inner, a, b + j, b_row, c + j, c_row);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
