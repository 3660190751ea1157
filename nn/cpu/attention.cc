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

// Replaces a query's scores by exp(score - greatest), followed by zeros up to a whole vector.
// Returns their sum. Subtracting the greatest score keeps every exponential at or below 1.
HWY_INLINE float Exponentials(int64_t keys, float* scores, float* greatest) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d), padded = (keys + 15) / 16 * 16;
  std::fill(scores + keys, scores + padded, -std::numeric_limits<float>::infinity());
  FloatVec most = hn::Set(d, scores[0]);
  for (int64_t j = 0; j < padded; j += lanes) most = hn::Max(most, hn::Load(d, scores + j));
  *greatest = hn::GetLane(hn::MaxOfLanes(d, most));
  const FloatVec shift = hn::Set(d, *greatest);
  for (int64_t j = 0; j < padded; j += lanes) {
    hn::Store(Exponential(d, hn::Sub(hn::Load(d, scores + j), shift)), d, scores + j);
  }
  std::fill(scores + keys, scores + padded, 0.0f);
  FloatVec sums = hn::Zero(d);
  for (int64_t j = 0; j < padded; j += lanes) sums = hn::Add(sums, hn::Load(d, scores + j));
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
  // Scores: queries times transposed keys, a strip of four queries by a block of keys at a time.
  for (int64_t block = 0; block < seen; block += kBlock) {
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
  for (int64_t t = begin; t < rows; ++t) {
    float greatest = 0;
    const int64_t keys = g.SeenBy(first + t);
    const float sum = Exponentials(keys, scores + t * scores_row, &greatest);
    factors[t] = 1 / (drops ? sum * (1 - g.spec->dropout) : sum);
    if (t < of.place || t >= end || a.log_sum_exp == nullptr) continue;
    a.log_sum_exp[(g.sample * g.spec->heads + head) * a.qkv.dims[1] + first - of.origin + t] =
        greatest + std::log(sum);
    if (drops) DropScores(mask, g.element(head, first + t), keys, scores + t * scores_row);
  }
  std::fill(y + begin * width, y + rows * width, 0.0f);
  // y: exponentials times values; y stays in the cache while the blocks of keys pass.
  for (int64_t block = 0; block < seen; block += kBlock) {
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

// Appends the new rows to the cache, then loads all of its rows into the thread's memory.
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
  for (int64_t first = 0; first < g.positions; first += kBlock) {
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

namespace cpu {
namespace {

class CpuAttention final : public Attention {
 public:
  CpuAttention(int threads, const AttentionSpec& spec)
      : spec_(spec), rotation_(spec), memory_(threads) {}

  Error Forward(const AttentionForward& a) override {
    RETURN_ERROR(CheckDropout(spec_, a.qkv.dims[1]));
    RETURN_ERROR(CheckLengths(spec_, a.lengths));
    ForEachGroup(a.qkv.dims[0], a.qkv.dims[1], a.lengths,
                 [&](const HeadGroup& group, AttentionMemory* memory) {
                   HWY_DYNAMIC_DISPATCH(ForwardGroup)(a, group, memory);
                 });
    return Error{};
  }
  Error Backward(const AttentionBackward& a) override {
    RETURN_ERROR(CheckDropout(spec_, a.qkv.dims[1]));
    RETURN_ERROR(CheckLengths(spec_, a.lengths));
    ForEachGroup(
        a.qkv.dims[0], a.first_position + a.qkv.dims[1], a.lengths,
        [&](const HeadGroup& group, AttentionMemory* memory) { BackwardGroup(a, group, memory); });
    return Error{};
  }
  Error Continue(const AttentionCached& a) override {
    const int64_t end = a.first_position + a.qkv.dims[1], context = a.cache.dims[2];
    RETURN_ERROR(CheckContext(a.first_position, end, context));
    RETURN_ERROR(CheckCausal(spec_));
    if (a.log_sum_exp != nullptr) RETURN_ERROR(CheckNoDropout(spec_));
    ForEachGroup(a.qkv.dims[0], end, nullptr, [&](const HeadGroup& group, AttentionMemory* memory) {
      HWY_DYNAMIC_DISPATCH(ContinueGroup)(a, group, memory);
    });
    return Error{};
  }

 private:
  template <typename Body>
  void ForEachGroup(int64_t batch, int64_t positions, const int32_t* lengths, const Body& body) {
    const int64_t groups = batch * spec_.kv_heads;
    rotation_.Prepare(positions);
    const auto threads = static_cast<int64_t>(memory_.size());
    ParallelFor(static_cast<int>(threads), threads, [&](int64_t thread) {
      for (int64_t i = groups * thread / threads; i < groups * (thread + 1) / threads; ++i) {
        const int64_t sample = i / spec_.kv_heads;
        const int64_t length = lengths == nullptr ? positions : lengths[sample];
        body({&spec_, &rotation_, positions, sample, i % spec_.kv_heads, length}, &memory_[thread]);
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
