// Copies blocks of rows into a thread's memory and back (nn/cpu/attention_blocks.h), for every
// Highway target.

#if defined(THINWIRE_NN_CPU_ATTENTION_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_NN_CPU_ATTENTION_BLOCKS_INL_H_
#undef THINWIRE_NN_CPU_ATTENTION_BLOCKS_INL_H_
#else
#define THINWIRE_NN_CPU_ATTENTION_BLOCKS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "nn/cpu/attention_blocks.h"
#include "nn/cpu/bf16.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// Number of rows that a prefetch runs ahead.
inline constexpr int64_t kRowsAhead = 8;

// Returns row t of `rows` in the tensor.
template <typename T>
HWY_INLINE T* RowAt(const cpu::HeadGroup& g, const cpu::HeadRows& rows, int64_t t) {
  const int64_t positions = rows.x->dims[1], stride = rows.x->dims[2];
  return static_cast<T*>(rows.x->data) +
         (g.sample * positions + rows.first - rows.origin + t) * stride + rows.head * g.size();
}

// Rotates a row by its position, or by the negative position if `back`.
HWY_INLINE void Turn(const cpu::Rotation& rotation, int64_t position, bool back, float* row) {
  const int64_t half = rotation.half();
  const float* const cosines = rotation.cosines(position);
  const float* const sines = rotation.sines(position);
  const float sign = back ? -1.0f : 1.0f;
  for (int64_t i = 0; i < half; ++i) {
    const float a = row[i], b = row[i + half], s = sign * sines[i];
    row[i] = a * cosines[i] - b * s;
    row[i + half] = b * cosines[i] + a * s;
  }
}

// Prefetches a row: rows are a page or more apart in memory, which hardware does not foresee.
template <typename T>
HWY_INLINE void PrefetchRow(const cpu::HeadGroup& g, const cpu::HeadRows& rows, int64_t t) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const T* const row = RowAt<const T>(g, rows, t);
  for (int64_t j = 0; j < g.size(); j += kLine) hwy::Prefetch(row + j);
}

// Copies `rows`, times `factor`, to `to`: [kBlock, width], with zeros around them.
template <typename T>
HWY_INLINE void LoadRows(const cpu::HeadGroup& g, const cpu::HeadRows& rows, float factor,
                         float* to) {
  const int64_t width = g.width();
  std::fill(to, to + rows.place * width, 0.0f);
  for (int64_t t = 0; t < rows.count; ++t) {
    if (t + kRowsAhead < rows.count) PrefetchRow<T>(g, rows, t + kRowsAhead);
    const T* const from = RowAt<const T>(g, rows, t);
    float* const row = to + (rows.place + t) * width;
    for (int64_t j = 0; j < g.size(); ++j) row[j] = factor * LoadOne(from + j);
    std::fill(row + g.size(), row + width, 0.0f);
    if (rows.turned) Turn(*g.rotation, rows.first + t, false, row);
  }
  std::fill(to + (rows.place + rows.count) * width, to + cpu::kBlock * width, 0.0f);
}

// Stores the rows of `from`, [kBlock, width]; row t is multiplied by factors[t].
template <typename T>
HWY_INLINE void StoreRows(const cpu::HeadGroup& g, const cpu::HeadRows& rows, const float* factors,
                          float* from) {
  for (int64_t t = 0; t < rows.count; ++t) {
    float* const row = from + (rows.place + t) * g.width();
    if (rows.turned) Turn(*g.rotation, rows.first + t, true, row);
    T* const to = RowAt<T>(g, rows, t);
    const float factor = factors[rows.place + t];
    for (int64_t j = 0; j < g.size(); ++j) StoreOne(factor * row[j], to + j);
  }
}

// Returns the cache as a tensor in which a sample's keys and its values look like two samples, with
// one head for each of their heads.
HWY_INLINE TensorView CacheRows(const TensorView& cache) {
  TensorView rows = cache;
  rows.rank = 3;
  rows.dims[0] = 2 * cache.dims[0];
  rows.dims[1] = cache.dims[2];
  rows.dims[2] = cache.dims[3] * cache.dims[4];
  return rows;
}

// These turn a group into that of its keys, or of its values, in such a tensor.
HWY_INLINE cpu::HeadGroup OfCachedKeys(cpu::HeadGroup g) {
  g.sample *= 2;
  return g;
}

HWY_INLINE cpu::HeadGroup OfCachedValues(cpu::HeadGroup g) {
  g.sample = 2 * g.sample + 1;
  return g;
}

// Transposes four columns of four rows, `stride` apart, into rows kBlock apart.
HWY_INLINE void TransposeFour(const float* from, int64_t stride, float* to) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;  // for moves of two floats only, never computed with
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + stride);
  const auto c = hn::LoadU(d, from + 2 * stride), e = hn::LoadU(d, from + 3 * stride);
  // a0 b0 a1 b1 and c0 e0 c1 e1 become a0 b0 c0 e0 and a1 b1 c1 e1; the upper halves likewise.
  const auto ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ce = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ab_upper = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_upper = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce)), d, to + cpu::kBlock);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_upper, ce_upper)), d,
             to + 2 * cpu::kBlock);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_upper, ce_upper)), d,
             to + 3 * cpu::kBlock);
}

// Transposes a block.   rows: [kBlock, width]   across: [size, kBlock]
HWY_INLINE void Transpose(const cpu::HeadGroup& g, const float* rows, float* across) {
  constexpr int64_t kBlock = cpu::kBlock;
  const int64_t width = g.width(), by_four = g.size() / 4 * 4;
  for (int64_t t = 0; t < kBlock; t += 4) {
    for (int64_t j = 0; j < by_four; j += 4) {
      TransposeFour(rows + t * width + j, width, across + j * kBlock + t);
    }
  }
  for (int64_t j = by_four; j < g.size(); ++j) {
    for (int64_t t = 0; t < kBlock; ++t) across[j * kBlock + t] = rows[t * width + j];
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
