#include "nn/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "nn/cpu/attention_blocks.h"
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
using cpu::kBlock;

// A query's scores become exp(score - greatest), with zeros behind them up to whole vectors.
// Returns their sum.
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

HWY_INLINE void DropScores(const DropoutMask& mask, uint32_t element, int64_t keys, float* scores) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  for (int64_t j = 0; j < keys; j += lanes) {
    hn::Store(KeptOf(d, mask, element + static_cast<uint32_t>(j), hn::Load(d, scores + j)), d,
              scores + j);
  }
}

// The scores of a block of queries are whole in memory, [kBlock, scores_row]: no maximum changes
// once it is known.
template <typename T>
void ForwardOfQueries(const AttentionForward& a, const HeadGroup& g, int64_t head, int64_t first,
                      AttentionMemory* memory) {
  const int64_t width = g.width(), size = g.size(), scores_row = g.blocks() * kBlock + 16;
  const int64_t count = std::min(kBlock, g.positions - first);
  const int64_t rows = (count + kStrip - 1) / kStrip * kStrip;
  float* const queries = memory->queries.Fit(kBlock * width);
  float* const scores = memory->scores.Fit(kBlock * scores_row);
  float* const y = memory->product.Fit(kBlock * width);
  LoadRows<T>(g, {&a.qkv, head, first, count, true}, g.scale(), queries);
  const auto keys_of = [&](int64_t t, int64_t block) {
    return std::min(kBlock, first + t + kStrip - block);
  };
  for (int64_t block = 0; block <= first; block += kBlock) {
    for (int64_t t = 0; t < rows; t += kStrip) {
      Strip<false>((keys_of(t, block) + 15) / 16 * 16, size, {queries + t * width, width, 1},
                   memory->keys_across.data() + block * size, kBlock,
                   scores + t * scores_row + block, scores_row);
    }
  }
  const bool drops = a.log_sum_exp != nullptr && g.spec->dropout > 0;
  const DropoutMask mask(a.dropout_key, a.first_sample + g.sample, g.spec->dropout);
  float factors[kBlock];
  for (int64_t t = 0; t < rows; ++t) {
    float greatest = 0;
    const int64_t keys = first + t + 1;
    const float sum = Exponentials(keys, scores + t * scores_row, &greatest);
    factors[t] = 1 / (drops ? sum * (1 - g.spec->dropout) : sum);
    if (t >= count || a.log_sum_exp == nullptr) continue;
    a.log_sum_exp[(g.sample * g.spec->heads + head) * g.positions + first + t] =
        greatest + std::log(sum);
    if (drops) DropScores(mask, g.element(head, first + t), keys, scores + t * scores_row);
  }
  std::fill(y, y + rows * width, 0.0f);
  for (int64_t block = 0; block <= first; block += kBlock) {
    for (int64_t t = 0; t < rows; t += kStrip) {
      Strip<true>(width, keys_of(t, block), {scores + t * scores_row + block, scores_row, 1},
                  memory->values.data() + block * width, width, y + t * width, width);
    }
  }
  StoreRows<T>(g, {&a.y, head, first, count, false}, factors, y);
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
      ForwardOfQueries<T>(a, g, head, first, memory);
    }
  }
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

namespace cpu {
namespace {

class CpuAttention final : public Attention {
 public:
  CpuAttention(int threads, const AttentionSpec& spec)
      : spec_(spec), rotation_(spec), memory_(threads) {}

  Error Forward(const AttentionForward& a) override {
    return ForEachGroup(a.qkv, [&](const HeadGroup& group, AttentionMemory* memory) {
      HWY_DYNAMIC_DISPATCH(ForwardGroup)(a, group, memory);
    });
  }
  Error Backward(const AttentionBackward& a) override {
    return ForEachGroup(a.qkv, [&](const HeadGroup& group, AttentionMemory* memory) {
      BackwardGroup(a, group, memory);
    });
  }

 private:
  template <typename Body>
  Error ForEachGroup(const TensorView& qkv, const Body& body) {
    const int64_t positions = qkv.dims[1], groups = qkv.dims[0] * spec_.kv_heads;
    if (spec_.dropout > 0 && spec_.heads * positions * positions > int64_t{UINT32_MAX}) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       "attention: dropout over %lld heads and %lld positions, want fewer than "
                       "2^32 scores a sample",
                       static_cast<long long>(spec_.heads), static_cast<long long>(positions));
    }
    rotation_.Prepare(positions);
    const auto threads = static_cast<int64_t>(memory_.size());
    ParallelFor(static_cast<int>(threads), threads, [&](int64_t thread) {
      for (int64_t i = groups * thread / threads; i < groups * (thread + 1) / threads; ++i) {
        body({&spec_, &rotation_, positions, i / spec_.kv_heads, i % spec_.kv_heads},
             &memory_[thread]);
      }
    });
    return Error{};
  }

  const AttentionSpec spec_;
  Rotation rotation_;
  std::vector<AttentionMemory> memory_;  // of each thread
};

}  // namespace

Error CheckSpec(const AttentionSpec& spec) {
  if (spec.heads < 1 || spec.kv_heads < 1 || spec.heads % spec.kv_heads != 0 ||
      spec.head_size < 1) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        "attention: %lld heads of %lld in groups of %lld keys, want at least 1 each and "
        "a multiple of the keys",
        static_cast<long long>(spec.heads), static_cast<long long>(spec.head_size),
        static_cast<long long>(spec.kv_heads));
  }
  if (spec.rope_theta < 0 || (spec.rope_theta > 0 && spec.head_size % 2 != 0)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "attention: rotary positions with theta %g and heads of %lld, want theta at "
                     "least 0 and an even size",
                     static_cast<double>(spec.rope_theta), static_cast<long long>(spec.head_size));
  }
  if (!(spec.dropout >= 0 && spec.dropout < 1)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "attention: dropout %g, want a rate in [0, 1)",
                     static_cast<double>(spec.dropout));
  }
  return Error{};
}

std::unique_ptr<Attention> NewAttention(int threads, const AttentionSpec& spec) {
  return std::make_unique<CpuAttention>(threads, spec);
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
