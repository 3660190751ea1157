#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "nn/attention_checks.h"
#include "nn/cpu/attention_blocks.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/attention_blocks-inl.h"
#include "nn/cpu/dropout_mask-inl.h"
#include "nn/cpu/exp-inl.h"
#include "nn/cpu/product-inl.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using cpu::AttentionMemory;
using cpu::HeadGroup;
using cpu::HeadRows;
using cpu::kBlock;

// Replaces a query's scores, those of keys [first, keys), by exp(score - greatest), between zeros
// that make whole vectors of them. Returns their sum. Subtracting the greatest score keeps every
// exponential at or below 1.
HWY_INLINE float Exponentials(int64_t first, int64_t keys, float* scores, float* greatest) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d), begin = first / 16 * 16, padded = (keys + 15) / 16 * 16;
  std::fill(scores + begin, scores + first, -std::numeric_limits<float>::infinity());
  std::fill(scores + keys, scores + padded, -std::numeric_limits<float>::infinity());
  FloatVec most = hn::Set(d, scores[first]);
  for (int64_t j = begin; j < padded; j += lanes) most = hn::Max(most, hn::Load(d, scores + j));
  *greatest = hn::GetLane(hn::MaxOfLanes(d, most));
  const FloatVec shift = hn::Set(d, *greatest);
  for (int64_t j = begin; j < padded; j += lanes) {
    hn::Store(Exponential(d, hn::Sub(hn::Load(d, scores + j), shift)), d, scores + j);
  }
  std::fill(scores + begin, scores + first, 0.0f);
  std::fill(scores + keys, scores + padded, 0.0f);
  FloatVec sums = hn::Zero(d);
  for (int64_t j = begin; j < padded; j += lanes) sums = hn::Add(sums, hn::Load(d, scores + j));
  return hn::GetLane(hn::SumOfLanes(d, sums));
}

// Zeroes the results that dropout drops; the caller scales the others.
HWY_INLINE void DropScores(const DropoutMask& mask, uint32_t element, int64_t keys, float* scores) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  for (int64_t j = 0; j < keys; j += lanes) {
    hn::Store(KeptOf(d, mask, element + static_cast<uint32_t>(j), hn::Load(d, scores + j)), d,
              scores + j);
  }
}

// Computes queries of one block, which they need not begin. Their scores are in memory as a whole,
// [kBlock, scores_row], so the greatest is known before any exponential. The result of a row does
// not depend on the other rows.
template <typename T>
void ForwardOfQueries(const AttentionForward& a, const HeadGroup& g, const HeadRows& of,
                      AttentionMemory* memory) {
  const int64_t width = g.width(), size = g.size(), scores_row = g.blocks() * kBlock + 16;
  const int64_t head = of.head, first = of.first - of.place, end = of.place + of.count;
  const int64_t begin = of.place / kStrip * kStrip, rows = (end + kStrip - 1) / kStrip * kStrip;
  float* const queries = memory->queries.Fit(kBlock * width);
  float* const scores = memory->scores.Fit(kBlock * scores_row);
  float* const y = memory->product.Fit(kBlock * width);
  LoadRows<T>(g, of, g.scale(), queries);
  // Keys of a block that a strip of queries sees: as many as its last query does.
  const auto keys_of = [&](int64_t t, int64_t block) {
    return std::min(kBlock, g.SeenBy(first + t + kStrip - 1) - block);
  };
  const int64_t seen = g.SeenBy(first + kBlock - 1);
  const int64_t start = g.FirstSeenBy(of.first) / kBlock * kBlock;  // no query sees what is before
  // Scores: queries times transposed keys, a strip of four queries by a block of keys at a time.
  for (int64_t block = start; block < seen; block += kBlock) {
    for (int64_t t = begin; t < rows; t += kStrip) {
      Strip<false>((keys_of(t, block) + 15) / 16 * 16, size, {queries + t * width, width, 1},
                   memory->keys_across.data() + block * size, kBlock,
                   scores + t * scores_row + block, scores_row);
    }
  }
  const bool drops = a.log_sum_exp != nullptr && g.spec->dropout > 0;
  const DropoutMask mask(a.dropout_key, a.first_sample + g.sample, g.spec->dropout);
  float factors[kBlock];
  // Softmax of each row. The division by the sum is left to StoreRows.
  for (int64_t t = of.place; t < end; ++t) {
    float greatest = 0;
    const int64_t oldest = g.FirstSeenBy(first + t), keys = g.SeenBy(first + t);
    std::fill(scores + t * scores_row + start, scores + t * scores_row + oldest / 16 * 16, 0.0f);
    const float sum = Exponentials(oldest, keys, scores + t * scores_row, &greatest);
    factors[t] = 1 / (drops ? sum * (1 - g.spec->dropout) : sum);
    if (a.log_sum_exp == nullptr) continue;
    a.log_sum_exp[(g.sample * g.spec->heads + head) * a.qkv.dims[1] + first - of.origin + t] =
        greatest + std::log(sum);
    if (drops) {
      DropScores(mask, g.element(head, first + t) + static_cast<uint32_t>(start), keys - start,
                 scores + t * scores_row + start);
    }
  }
  std::fill(y + begin * width, y + rows * width, 0.0f);
  // y: exponentials times values; y stays in the cache while the blocks of keys pass.
  for (int64_t block = start; block < seen; block += kBlock) {
    for (int64_t t = begin; t < rows; t += kStrip) {
      Strip<true>(width, keys_of(t, block), {scores + t * scores_row + block, scores_row, 1},
                  memory->values.data() + block * width, width, y + t * width, width);
    }
  }
  StoreRows<T>(g, {&a.y, head, of.first, of.count, false, of.origin, of.place}, factors, y);
}

template <typename T>
void ForwardGroupTyped(const AttentionForward& a, const HeadGroup& g, AttentionMemory* memory) {
  const int64_t width = g.width(), padded = g.blocks() * kBlock;
  float* const keys = memory->rows.Fit(kBlock * width);
  float* const keys_across = memory->keys_across.Fit(padded * g.size());
  float* const values = memory->values.Fit(padded * width);
  for (int64_t first = 0; first < g.positions; first += kBlock) {
    const int64_t count = std::min(kBlock, g.positions - first);
    LoadRows<T>(g, {&a.qkv, g.key_head(), first, count, true}, 1, keys);
    Transpose(g, keys, keys_across + first * g.size());
    LoadRows<T>(g, {&a.qkv, g.value_head(), first, count, false}, 1, values + first * width);
  }
  for (int64_t head = g.first_head(); head < g.last_head(); ++head) {
    for (int64_t first = 0; first < g.positions; first += kBlock) {
      const int64_t count = std::min(kBlock, g.positions - first);
      ForwardOfQueries<T>(a, g, {&a.qkv, head, first, count, true}, memory);
    }
  }
}

// Appends the new rows to the cache, then loads those rows of it that are seen into the thread's
// memory.
template <typename T>
void FillAndLoadCache(const AttentionCached& a, const HeadGroup& g, AttentionMemory* memory) {
  const int64_t width = g.width(), padded = g.blocks() * kBlock;
  const TensorView cache = CacheRows(a.cache);
  const HeadGroup of_keys = OfCachedKeys(g), of_values = OfCachedValues(g);
  float* const rows = memory->rows.Fit(kBlock * width);
  float* const keys_across = memory->keys_across.Fit(padded * g.size());
  float* const values = memory->values.Fit(padded * width);
  float ones[kBlock];
  std::fill(ones, ones + kBlock, 1.0f);
  for (int64_t first = a.first_position; first < g.positions; first += kBlock) {
    const int64_t count = std::min(kBlock, g.positions - first);
    LoadRows<T>(g, {&a.qkv, g.key_head(), first, count, true, a.first_position}, 1, rows);
    StoreRows<T>(of_keys, {&cache, g.kv_head, first, count, false}, ones, rows);
    LoadRows<T>(g, {&a.qkv, g.value_head(), first, count, false, a.first_position}, 1, rows);
    StoreRows<T>(of_values, {&cache, g.kv_head, first, count, false}, ones, rows);
  }
  const int64_t start = g.FirstSeenBy(a.first_position) / kBlock * kBlock;
  for (int64_t first = start; first < g.positions; first += kBlock) {
    const int64_t count = std::min(kBlock, g.positions - first);
    LoadRows<T>(of_keys, {&cache, g.kv_head, first, count, false}, 1, rows);
    Transpose(g, rows, keys_across + first * g.size());
    LoadRows<T>(of_values, {&cache, g.kv_head, first, count, false}, 1, values + first * width);
  }
}

// Uses the blocks of the whole sequence, so that each query gets the same bits as in Forward.
template <typename T>
void ContinueGroupTyped(const AttentionCached& a, const HeadGroup& g, AttentionMemory* memory) {
  FillAndLoadCache<T>(a, g, memory);
  AttentionForward forward;
  forward.qkv = a.qkv;
  forward.y = a.y;
  forward.log_sum_exp = a.log_sum_exp;
  for (int64_t head = g.first_head(); head < g.last_head(); ++head) {
    for (int64_t first = a.first_position; first < g.positions;) {
      const int64_t place = first % kBlock;
      const int64_t count = std::min(kBlock - place, g.positions - first);
      ForwardOfQueries<T>(forward, g, {&a.qkv, head, first, count, true, a.first_position, place},
                          memory);
      first += count;
    }
  }
}

// A head's queries [first, first + count). p are the softmax's results, k the dropout mask divided
// by 1 - rate, and mean = sum(p dp) = dy . y for each query:
//   dv += (k p)^T dy,  dp = k (dy v^T),  ds = p (dp - mean),  dq = ds k scale,  dk += ds^T q scale.
struct QueryBlock {
  const HeadGroup* group;
  int64_t head, first, count;
  const float* queries;  // [kBlock, width], multiplied by scale
  const float* dy;       // [kBlock, width]
  float means[kBlock], log_sum_exp[kBlock];

  // Returns the number of keys in block `block` that query t sees.
  int64_t keys_of(int64_t t, int64_t block) const {
    return std::min(kBlock, group->SeenBy(first + t) - block * kBlock);
  }
  // Returns the first of these queries that sees key `key` of block `block`.
  int64_t FirstSeeing(int64_t key, int64_t block) const {
    return group->spec->causal ? std::max<int64_t>(0, block * kBlock + key - first) : 0;
  }
  int64_t rows() const { return (count + kStrip - 1) / kStrip * kStrip; }
};

template <typename T>
HWY_INLINE void LoadQueries(const AttentionBackward& a, const HeadGroup& g, AttentionMemory* memory,
                            QueryBlock* q) {
  const int64_t width = g.width();
  float* const queries = memory->queries.Fit(kBlock * width);
  float* const dy = memory->dy.Fit(kBlock * width);
  float* const y = memory->rows.Fit(kBlock * width);
  const int64_t origin = a.first_position;
  LoadRows<T>(g, {&a.qkv, q->head, q->first, q->count, true, origin}, g.scale(), queries);
  LoadRows<T>(g, {&a.dy, q->head, q->first, q->count, false, origin}, 1, dy);
  LoadRows<T>(g, {&a.y, q->head, q->first, q->count, false, origin}, 1, y);
  // Each query's mean, and its log_sum_exp, from which p is computed again.
  const FloatTag d;
  for (int64_t t = 0; t < q->count; ++t) {
    FloatVec sums = hn::Zero(d);
    for (int64_t j = 0; j < width; j += static_cast<int64_t>(hn::Lanes(d))) {
      sums = hn::MulAdd(hn::Load(d, dy + t * width + j), hn::Load(d, y + t * width + j), sums);
    }
    q->means[t] = hn::GetLane(hn::SumOfLanes(d, sums));
    q->log_sum_exp[t] =
        a.log_sum_exp[(g.sample * g.spec->heads + q->head) * a.qkv.dims[1] + q->first - origin + t];
  }
  q->queries = queries;
  q->dy = dy;
}

// Replaces scores and dp of a query, [kBlock] each, by k p and ds.
HWY_INLINE void Differentiate(const HeadGroup& g, const QueryBlock& q, const DropoutMask& mask,
                              int64_t t, int64_t block, float* scores, float* dp) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d), keys = q.keys_of(t, block);
  const FloatVec log_sum_exp = hn::Set(d, q.log_sum_exp[t]), mean = hn::Set(d, q.means[t]);
  const int64_t unseen = std::max<int64_t>(0, g.FirstSeenBy(q.first + t) - block * kBlock);
  const bool drops = g.spec->dropout > 0;
  const FloatVec share = hn::Set(d, 1 / (1 - g.spec->dropout));
  const auto element = g.element(q.head, q.first + t) + static_cast<uint32_t>(block * kBlock);
  for (int64_t j = 0; j < keys; j += lanes) {
    const FloatVec p = Exponential(d, hn::Sub(hn::Load(d, scores + j), log_sum_exp));
    FloatVec kept = p, gradient = hn::Load(d, dp + j);
    if (drops) {
      const auto at = element + static_cast<uint32_t>(j);
      kept = KeptOf(d, mask, at, hn::Mul(share, p));
      gradient = KeptOf(d, mask, at, hn::Mul(share, gradient));
    }
    hn::Store(kept, d, scores + j);
    hn::Store(hn::Mul(p, hn::Sub(gradient, mean)), d, dp + j);
  }
  for (float* const row : {scores, dp}) {
    std::fill(row, row + std::min(unseen, keys), 0.0f);
    std::fill(row + keys, row + kBlock, 0.0f);
  }
}

// Adds what the queries get from the keys and values of one block to dq, and what they give to
// dkeys and dvalues.
HWY_INLINE void BackwardOfBlock(const HeadGroup& g, const QueryBlock& q, const DropoutMask& mask,
                                int64_t block, AttentionMemory* memory, float* dq) {
  const int64_t width = g.width(), size = g.size(), at = block * kBlock * width;
  float* const scores = memory->scores.Fit(kBlock * kBlock);
  float* const dscores = memory->dscores.Fit(kBlock * kBlock);
  const float* const keys_across = memory->keys_across.data() + block * kBlock * size;
  const float* const values_across = memory->values_across.data() + block * kBlock * size;
  // scores = q k^T and dp = dy v^T for a strip of queries, then k p and ds in their places.
  for (int64_t t = 0; t < q.rows(); t += kStrip) {
    const int64_t columns = (q.keys_of(t + kStrip - 1, block) + 15) / 16 * 16;
    Strip<false>(columns, size, {q.queries + t * width, width, 1}, keys_across, kBlock,
                 scores + t * kBlock, kBlock);
    Strip<false>(columns, size, {q.dy + t * width, width, 1}, values_across, kBlock,
                 dscores + t * kBlock, kBlock);
    for (int64_t i = t; i < t + kStrip; ++i) {
      if (i < q.count) {
        Differentiate(g, q, mask, i, block, scores + i * kBlock, dscores + i * kBlock);
      } else {
        std::fill(scores + i * kBlock, scores + (i + 1) * kBlock, 0.0f);
        std::fill(dscores + i * kBlock, dscores + (i + 1) * kBlock, 0.0f);
      }
    }
    Strip<true>(width, q.keys_of(t + kStrip - 1, block), {dscores + t * kBlock, kBlock, 1},
                memory->keys.data() + at, width, dq + t * width, width);
  }
  // dv += (k p)^T dy and dk += ds^T q for a strip of keys, with the transposed factors read by
  // stride.
  for (int64_t key = 0; key < q.keys_of(q.rows() - 1, block); key += kStrip) {
    const int64_t t = q.FirstSeeing(key, block);
    Strip<true>(width, q.rows() - t, {scores + t * kBlock + key, 1, kBlock}, q.dy + t * width,
                width, memory->dvalues.data() + at + key * width, width);
    Strip<true>(width, q.rows() - t, {dscores + t * kBlock + key, 1, kBlock}, q.queries + t * width,
                width, memory->dkeys.data() + at + key * width, width);
  }
}

template <typename T>
HWY_INLINE void LoadKeysAndValues(const AttentionBackward& a, const HeadGroup& g,
                                  AttentionMemory* memory) {
  const int64_t width = g.width(), padded = g.blocks() * kBlock;
  float* const keys = memory->keys.Fit(padded * width);
  float* const keys_across = memory->keys_across.Fit(padded * g.size());
  float* const values = memory->rows.Fit(kBlock * width);
  float* const values_across = memory->values_across.Fit(padded * g.size());
  const TensorView cache = a.dcache == nullptr ? TensorView{} : CacheRows(a.cache);
  for (int64_t first = 0; first < g.positions; first += kBlock) {
    const int64_t count = std::min(kBlock, g.positions - first);
    if (a.dcache == nullptr) {
      LoadRows<T>(g, {&a.qkv, g.key_head(), first, count, true}, 1, keys + first * width);
      LoadRows<T>(g, {&a.qkv, g.value_head(), first, count, false}, 1, values);
    } else {
      LoadRows<T>(OfCachedKeys(g), {&cache, g.kv_head, first, count, false}, 1,
                  keys + first * width);
      LoadRows<T>(OfCachedValues(g), {&cache, g.kv_head, first, count, false}, 1, values);
    }
    Transpose(g, keys + first * width, keys_across + first * g.size());
    Transpose(g, values, values_across + first * g.size());
  }
}

// Combines the gradients of the cache's rows: those of this backward pass and those of later
// positions' passes. For earlier positions the sums go to `dcache`; for the present ones to `rows`,
// [positions, width].
HWY_INLINE void ExchangeWithCache(const AttentionBackward& a, const HeadGroup& of_cache,
                                  float* rows) {
  TensorView dcache = CacheRows(a.cache);
  dcache.data = a.dcache;
  for (int64_t t = 0; t < of_cache.positions; ++t) {
    float* const row = rows + t * of_cache.width();
    float* const cached = RowAt<float>(of_cache, {&dcache, of_cache.kv_head, t, 1, false}, 0);
    float* const to = t < a.first_position ? cached : row;
    for (int64_t j = 0; j < of_cache.size(); ++j) to[j] = row[j] + cached[j];
  }
}

template <typename T>
void BackwardGroupTyped(const AttentionBackward& a, const HeadGroup& g, AttentionMemory* memory) {
  const int64_t width = g.width(), padded = g.blocks() * kBlock, origin = a.first_position;
  LoadKeysAndValues<T>(a, g, memory);
  float* const dkeys = memory->dkeys.Fit(padded * width);
  float* const dvalues = memory->dvalues.Fit(padded * width);
  std::fill(dkeys, dkeys + padded * width, 0.0f);
  std::fill(dvalues, dvalues + padded * width, 0.0f);
  const DropoutMask mask(a.dropout_key, a.first_sample + g.sample, g.spec->dropout);
  float ones[kBlock], scales[kBlock];
  std::fill(ones, ones + kBlock, 1.0f);
  std::fill(scales, scales + kBlock, g.scale());
  for (int64_t head = g.first_head(); head < g.last_head(); ++head) {
    // A block of queries never crosses a border between blocks of keys.
    for (int64_t first = origin, count; first < g.positions; first += count) {
      count = std::min(kBlock - first % kBlock, g.positions - first);
      QueryBlock q;
      q.group = &g;
      q.head = head;
      q.first = first;
      q.count = count;
      LoadQueries<T>(a, g, memory, &q);
      float* const dq = memory->product.Fit(kBlock * width);
      std::fill(dq, dq + kBlock * width, 0.0f);
      for (int64_t block = g.FirstSeenBy(first) / kBlock;
           block * kBlock < g.SeenBy(first + count - 1); ++block) {
        BackwardOfBlock(g, q, mask, block, memory, dq);
      }
      StoreRows<T>(g, {&a.dqkv, head, first, q.count, true, origin}, scales, dq);
    }
  }
  if (a.dcache != nullptr) {
    ExchangeWithCache(a, OfCachedKeys(g), dkeys);
    ExchangeWithCache(a, OfCachedValues(g), dvalues);
  }
  for (int64_t first = origin; first < g.positions; first += kBlock) {
    const int64_t count = std::min(kBlock, g.positions - first), at = first * width;
    StoreRows<T>(g, {&a.dqkv, g.key_head(), first, count, true, origin}, ones, dkeys + at);
    StoreRows<T>(g, {&a.dqkv, g.value_head(), first, count, false, origin}, ones, dvalues + at);
  }
}

void BackwardGroup(const AttentionBackward& a, const HeadGroup& g, AttentionMemory* memory) {
  a.qkv.dtype == DType::kF32 ? BackwardGroupTyped<float>(a, g, memory)
                             : BackwardGroupTyped<uint16_t>(a, g, memory);
}

void ContinueGroup(const AttentionCached& a, const HeadGroup& g, AttentionMemory* memory) {
  a.qkv.dtype == DType::kF32 ? ContinueGroupTyped<float>(a, g, memory)
                             : ContinueGroupTyped<uint16_t>(a, g, memory);
}

void ForwardGroup(const AttentionForward& a, const HeadGroup& g, AttentionMemory* memory) {
  a.qkv.dtype == DType::kF32 ? ForwardGroupTyped<float>(a, g, memory)
                             : ForwardGroupTyped<uint16_t>(a, g, memory);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(ForwardGroup);
HWY_EXPORT(ContinueGroup);
HWY_EXPORT(BackwardGroup);

namespace cpu {
namespace {

class CpuAttention final : public Attention {
 public:
  CpuAttention(int threads, const AttentionSpec& spec)
      : spec_(spec), rotation_(spec), memory_(threads) {}

  Error Forward(const AttentionForward& a) override {
    RETURN_ERROR(CheckDropout(spec_, a.qkv.dims[1]));
    RETURN_ERROR(CheckLengths(spec_, a.lengths));
    RETURN_ERROR(CheckFirstKey(spec_, a.first_key));
    ForEachGroup(a.qkv, {0, a.lengths, a.first_key},
                 [&](const HeadGroup& group, AttentionMemory* memory) {
                   HWY_DYNAMIC_DISPATCH(ForwardGroup)(a, group, memory);
                 });
    return Error{};
  }
  Error Backward(const AttentionBackward& a) override {
    RETURN_ERROR(CheckDropout(spec_, a.qkv.dims[1]));
    RETURN_ERROR(CheckLengths(spec_, a.lengths));
    RETURN_ERROR(CheckFirstKey(spec_, a.first_key));
    ForEachGroup(a.qkv, {a.first_position, a.lengths, a.first_key},
                 [&](const HeadGroup& group, AttentionMemory* memory) {
                   HWY_DYNAMIC_DISPATCH(BackwardGroup)(a, group, memory);
                 });
    return Error{};
  }
  Error Continue(const AttentionCached& a) override {
    const int64_t end = a.first_position + a.qkv.dims[1], context = a.cache.dims[2];
    RETURN_ERROR(CheckContext(a.first_position, end, context));
    RETURN_ERROR(CheckCausal(spec_));
    if (a.log_sum_exp != nullptr) RETURN_ERROR(CheckNoDropout(spec_));
    ForEachGroup(a.qkv, {a.first_position, nullptr, a.first_key},
                 [&](const HeadGroup& group, AttentionMemory* memory) {
                   HWY_DYNAMIC_DISPATCH(ContinueGroup)(a, group, memory);
                 });
    return Error{};
  }

 private:
  // Position of the first query, and what queries see.
  struct Seen {
    int64_t origin;
    const int32_t *lengths, *first_key;
  };

  template <typename Body>
  void ForEachGroup(const TensorView& qkv, const Seen& seen, const Body& body) {
    const int64_t groups = qkv.dims[0] * spec_.kv_heads, queries = qkv.dims[1];
    const int64_t positions = seen.origin + queries;
    rotation_.Prepare(positions);
    const auto threads = static_cast<int64_t>(memory_.size());
    ParallelFor(static_cast<int>(threads), threads, [&](int64_t thread) {
      for (int64_t i = groups * thread / threads; i < groups * (thread + 1) / threads; ++i) {
        const int64_t sample = i / spec_.kv_heads;
        HeadGroup group{&spec_, &rotation_, positions, sample, i % spec_.kv_heads, positions};
        if (seen.lengths != nullptr) group.length = seen.lengths[sample];
        if (seen.first_key != nullptr) group.first_key = seen.first_key + sample * queries;
        group.origin = seen.origin;
        body(group, &memory_[thread]);
      }
    });
  }

  const AttentionSpec spec_;
  Rotation rotation_;
  std::vector<AttentionMemory> memory_;  // one per thread
};

}  // namespace

std::unique_ptr<Attention> NewAttention(int threads, const AttentionSpec& spec) {
  return std::make_unique<CpuAttention>(threads, spec);
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
