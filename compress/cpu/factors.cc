#include "compress/cpu/factors.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/factors.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
constexpr size_t kLanes = hn::MaxLanes(F32());
constexpr size_t kTile = 4;  // columns of a factor that are computed together

// Each product of a row is eight partial sums whatever the vectors' length, so that all targets
// round alike.
constexpr size_t kSums = 8;
using Part = hn::CappedTag<float, kSums>;
constexpr size_t kPartLanes = hn::MaxLanes(Part());
constexpr size_t kParts = kSums / kPartLanes;

HWY_INLINE float SumOf(const float* s) {
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

// Computes the products of one row with kTile columns of q, which are independent chains of
// additions. The row's last group of eight may be short.
HWY_INLINE void RowTimesTile(const float* HWY_RESTRICT row, size_t n, const float* HWY_RESTRICT q,
                             size_t stride, float* HWY_RESTRICT out) {
  const Part d;
  HWY_ALIGN float sums[kTile][kSums];
  for (size_t part = 0; part < kParts; ++part) {
    const size_t first = part * kPartLanes;
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (size_t c = first; c < n; c += kSums) {
      const auto m = LoadPart(d, row + c, n - c);
      s0 = hn::Add(s0, hn::Mul(m, hn::LoadU(d, q + c)));
      s1 = hn::Add(s1, hn::Mul(m, hn::LoadU(d, q + stride + c)));
      s2 = hn::Add(s2, hn::Mul(m, hn::LoadU(d, q + 2 * stride + c)));
      s3 = hn::Add(s3, hn::Mul(m, hn::LoadU(d, q + 3 * stride + c)));
    }
    hn::Store(s0, d, sums[0] + first);
    hn::Store(s1, d, sums[1] + first);
    hn::Store(s2, d, sums[2] + first);
    hn::Store(s3, d, sums[3] + first);
  }
  for (size_t j = 0; j < kTile; ++j) out[j] = SumOf(sums[j]);
}

void MultiplyByFactorImpl(const RowBlock& m, const Columns& q, const Columns& p) {
  for (size_t j = 0; j < q.count; j += kTile) {
    const size_t used = HWY_MIN(kTile, q.count - j);
    for (size_t i = 0; i < m.rows; ++i) {
      const float* row = m.values + i * m.columns;
      if (j == 0) PrefetchPage(row);
      float products[kTile];
      RowTimesTile(row, m.columns, q.values + j * q.stride, q.stride, products);
      for (size_t k = 0; k < used; ++k) p.values[(j + k) * p.stride + i] = products[k];
    }
  }
}

// Multiplies one vector of the matrix's columns, from c on, by up to kTile columns of p, from j on.
HWY_INLINE void TransposedTile(const RowBlock& m, size_t c, const Columns& p, size_t j,
                               const Columns& q) {
  const F32 d;
  const size_t n = m.columns - c;
  const size_t used = HWY_MIN(kTile, p.count - j);
  const float* column[kTile];  // columns behind the last repeat it
  for (size_t k = 0; k < kTile; ++k) column[k] = p.values + (j + HWY_MIN(k, used - 1)) * p.stride;
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (size_t i = 0; i < m.rows; ++i) {
    const auto v = LoadPart(d, m.values + i * m.columns + c, n);
    s0 = hn::Add(s0, hn::Mul(v, hn::Set(d, column[0][i])));
    s1 = hn::Add(s1, hn::Mul(v, hn::Set(d, column[1][i])));
    s2 = hn::Add(s2, hn::Mul(v, hn::Set(d, column[2][i])));
    s3 = hn::Add(s3, hn::Mul(v, hn::Set(d, column[3][i])));
  }
  const hn::Vec<F32> all[kTile] = {s0, s1, s2, s3};
  for (size_t k = 0; k < used; ++k) {
    StorePart(all[k], d, q.values + (j + k) * q.stride + c, n);
  }
}

void MultiplyTransposedImpl(const RowBlock& m, const Columns& p, const Columns& q) {
  for (size_t c = 0; c < m.columns; c += kLanes) {
    for (size_t j = 0; j < p.count; j += kTile) TransposedTile(m, c, p, j, q);
  }
}

HWY_INLINE hn::Vec<F32> OneVector(const float* p, const Columns& q, size_t c, size_t n) {
  const F32 d;
  auto sum = hn::Mul(hn::Set(d, p[0]), LoadPart(d, q.values + c, n));
  for (size_t j = 1; j < q.count; ++j) {
    sum = hn::Add(sum, hn::Mul(hn::Set(d, p[j]), LoadPart(d, q.values + j * q.stride + c, n)));
  }
  return sum;
}

void MultiplyFactorsImpl(const float* HWY_RESTRICT p, size_t rows, const Columns& q, size_t columns,
                         float* HWY_RESTRICT m) {
  const F32 d;
  for (size_t i = 0; i < rows; ++i, p += q.count, m += columns) {
    size_t c = 0;
    for (; c + 4 * kLanes <= columns; c += 4 * kLanes) {
      const auto p0 = hn::Set(d, p[0]);
      const float* from = q.values + c;
      auto s0 = hn::Mul(p0, hn::LoadU(d, from));
      auto s1 = hn::Mul(p0, hn::LoadU(d, from + kLanes));
      auto s2 = hn::Mul(p0, hn::LoadU(d, from + 2 * kLanes));
      auto s3 = hn::Mul(p0, hn::LoadU(d, from + 3 * kLanes));
      for (size_t j = 1; j < q.count; ++j) {
        from += q.stride;
        const auto pj = hn::Set(d, p[j]);
        s0 = hn::Add(s0, hn::Mul(pj, hn::LoadU(d, from)));
        s1 = hn::Add(s1, hn::Mul(pj, hn::LoadU(d, from + kLanes)));
        s2 = hn::Add(s2, hn::Mul(pj, hn::LoadU(d, from + 2 * kLanes)));
        s3 = hn::Add(s3, hn::Mul(pj, hn::LoadU(d, from + 3 * kLanes)));
      }
      hn::StoreU(s0, d, m + c);
      hn::StoreU(s1, d, m + c + kLanes);
      hn::StoreU(s2, d, m + c + 2 * kLanes);
      hn::StoreU(s3, d, m + c + 3 * kLanes);
    }
    for (; c < columns; c += kLanes) {
      StorePart(OneVector(p, q, c, columns - c), d, m + c, columns - c);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(MultiplyByFactorImpl);
HWY_EXPORT(MultiplyTransposedImpl);
HWY_EXPORT(MultiplyFactorsImpl);

void MultiplyByFactor(const RowBlock& m, const Columns& q, const Columns& p) {
  HWY_DYNAMIC_DISPATCH(MultiplyByFactorImpl)(m, q, p);
}

void MultiplyTransposed(const RowBlock& m, const Columns& p, const Columns& q) {
  HWY_DYNAMIC_DISPATCH(MultiplyTransposedImpl)(m, p, q);
}

void MultiplyFactors(const float* p, size_t rows, const Columns& q, size_t columns, float* m) {
  HWY_DYNAMIC_DISPATCH(MultiplyFactorsImpl)(p, rows, q, columns, m);
}

}  // namespace thinwire
#endif  // HWY_ONCE
