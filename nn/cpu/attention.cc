#include "nn/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/cpu/bf16.h"
#include "nn/cpu/parallel.h"
#include "nn/dropout_mask.h"

namespace thinwire::cpu {
namespace {

using Floats = std::vector<float>;

class CpuAttention final : public Attention {
 public:
  CpuAttention(int threads, const AttentionSpec& spec) : threads_(threads), spec_(spec) {}

  Error Forward(const AttentionForward& a) override {
    RETURN_ERROR(CheckPositions(a.qkv.dims[1]));
    ParallelFor(threads_, a.qkv.dims[0] * spec_.heads, [&](int64_t i) {
      a.qkv.dtype == DType::kF32 ? ForwardHead<float>(a, i / spec_.heads, i % spec_.heads)
                                 : ForwardHead<uint16_t>(a, i / spec_.heads, i % spec_.heads);
    });
    return Error{};
  }
  Error Backward(const AttentionBackward& a) override {
    RETURN_ERROR(CheckPositions(a.qkv.dims[1]));
    ParallelFor(threads_, a.qkv.dims[0] * spec_.kv_heads, [&](int64_t i) {
      const int64_t sample = i / spec_.kv_heads, kv_head = i % spec_.kv_heads;
      a.qkv.dtype == DType::kF32 ? BackwardGroup<float>(a, sample, kv_head)
                                 : BackwardGroup<uint16_t>(a, sample, kv_head);
    });
    return Error{};
  }

 private:
  Error CheckPositions(int64_t positions) const {
    if (spec_.dropout == 0 || spec_.heads * positions * positions <= int64_t{UINT32_MAX}) {
      return Error{};
    }
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "attention: dropout over %lld heads and %lld positions, want fewer than 2^32 "
                     "scores a sample",
                     static_cast<long long>(spec_.heads), static_cast<long long>(positions));
  }

  int64_t size() const { return spec_.head_size; }
  int64_t row() const { return (spec_.heads + 2 * spec_.kv_heads) * size(); }
  int64_t group() const { return spec_.heads / spec_.kv_heads; }

  // Turns [T, head_size] by its positions, forwards or backwards.
  void Turn(Floats* x, double direction) const {
    if (spec_.rope_theta == 0) return;
    const int64_t half = size() / 2;
    for (int64_t t = 0; t * size() < static_cast<int64_t>(x->size()); ++t) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle = direction * static_cast<double>(t) *
                             std::pow(static_cast<double>(spec_.rope_theta),
                                      -2.0 * static_cast<double>(i) / static_cast<double>(size()));
        const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
        float *a = x->data() + t * size() + i, *b = a + half;
        const float turned = *a * c - *b * s;
        *b = *b * c + *a * s;
        *a = turned;
      }
    }
  }

  // One head of [batch, T, row]: [T, head_size].
  template <typename T>
  Floats Head(const TensorView& x, int64_t row, int64_t sample, int64_t head) const {
    const int64_t positions = x.dims[1];
    Floats values(positions * size());
    for (int64_t t = 0; t < positions; ++t) {
      const T* from =
          static_cast<const T*>(x.data) + (sample * positions + t) * row + head * size();
      for (int64_t j = 0; j < size(); ++j) values[t * size() + j] = LoadOne(from + j);
    }
    return values;
  }
  template <typename T>
  void StoreHead(const Floats& values, const TensorView& x, int64_t row, int64_t sample,
                 int64_t head) const {
    const int64_t positions = x.dims[1];
    for (int64_t t = 0; t < positions; ++t) {
      T* to = static_cast<T*>(x.data) + (sample * positions + t) * row + head * size();
      for (int64_t j = 0; j < size(); ++j) StoreOne(values[t * size() + j], to + j);
    }
  }

  float Dot(const float* a, const float* b) const {
    float sum = 0;
    for (int64_t j = 0; j < size(); ++j) sum += a[j] * b[j];
    return sum;
  }

  template <typename T>
  void ForwardHead(const AttentionForward& a, int64_t sample, int64_t head) const {
    const int64_t positions = a.qkv.dims[1], kv_head = head / group();
    Floats q = Head<T>(a.qkv, row(), sample, head);
    Floats k = Head<T>(a.qkv, row(), sample, spec_.heads + kv_head);
    const Floats v = Head<T>(a.qkv, row(), sample, spec_.heads + spec_.kv_heads + kv_head);
    Turn(&q, 1);
    Turn(&k, 1);
    const float scale = 1.0f / std::sqrt(static_cast<float>(size()));
    const bool drops = a.log_sum_exp != nullptr && spec_.dropout > 0;
    const DropoutMask mask(a.dropout_key, a.first_sample + sample, spec_.dropout);
    Floats y(q.size()), scores(positions);
    for (int64_t t = 0; t < positions; ++t) {
      float greatest = -INFINITY;
      for (int64_t s = 0; s <= t; ++s) {
        scores[s] = scale * Dot(&q[t * size()], &k[s * size()]);
        greatest = std::max(greatest, scores[s]);
      }
      float sum = 0;
      for (int64_t s = 0; s <= t; ++s) {
        scores[s] = std::exp(scores[s] - greatest);
        sum += scores[s];
      }
      for (int64_t s = 0; s <= t; ++s) {
        const auto element = static_cast<uint32_t>((head * positions + t) * positions + s);
        if (drops && !mask.Keeps(element)) continue;
        const float weight = scores[s] / (drops ? sum * (1 - spec_.dropout) : sum);
        for (int64_t j = 0; j < size(); ++j) y[t * size() + j] += weight * v[s * size() + j];
      }
      if (a.log_sum_exp != nullptr) {
        a.log_sum_exp[(sample * spec_.heads + head) * positions + t] = greatest + std::log(sum);
      }
    }
    StoreHead<T>(y, a.y, spec_.heads * size(), sample, head);
  }

  template <typename T>
  void BackwardGroup(const AttentionBackward& a, int64_t sample, int64_t kv_head) const {
    const int64_t positions = a.qkv.dims[1];
    Floats k = Head<T>(a.qkv, row(), sample, spec_.heads + kv_head);
    const Floats v = Head<T>(a.qkv, row(), sample, spec_.heads + spec_.kv_heads + kv_head);
    Turn(&k, 1);
    Floats dk(k.size()), dv(v.size());
    const float scale = 1.0f / std::sqrt(static_cast<float>(size()));
    const DropoutMask mask(a.dropout_key, a.first_sample + sample, spec_.dropout);
    for (int64_t head = kv_head * group(); head < (kv_head + 1) * group(); ++head) {
      Floats q = Head<T>(a.qkv, row(), sample, head);
      Turn(&q, 1);
      const Floats y = Head<T>(a.y, spec_.heads * size(), sample, head);
      const Floats dy = Head<T>(a.dy, spec_.heads * size(), sample, head);
      Floats dq(q.size());
      for (int64_t t = 0; t < positions; ++t) {
        const float mean = Dot(&dy[t * size()], &y[t * size()]);
        const float lse = a.log_sum_exp[(sample * spec_.heads + head) * positions + t];
        for (int64_t s = 0; s <= t; ++s) {
          const float p = std::exp(scale * Dot(&q[t * size()], &k[s * size()]) - lse);
          const auto element = static_cast<uint32_t>((head * positions + t) * positions + s);
          const float kept =
              spec_.dropout > 0 && !mask.Keeps(element) ? 0 : 1 / (1 - spec_.dropout);
          const float ds = scale * p * (kept * Dot(&dy[t * size()], &v[s * size()]) - mean);
          for (int64_t j = 0; j < size(); ++j) {
            dv[s * size() + j] += kept * p * dy[t * size() + j];
            dq[t * size() + j] += ds * k[s * size() + j];
            dk[s * size() + j] += ds * q[t * size() + j];
          }
        }
      }
      Turn(&dq, -1);
      StoreHead<T>(dq, a.dqkv, row(), sample, head);
    }
    Turn(&dk, -1);
    StoreHead<T>(dk, a.dqkv, row(), sample, spec_.heads + kv_head);
    StoreHead<T>(dv, a.dqkv, row(), sample, spec_.heads + spec_.kv_heads + kv_head);
  }

  const int threads_;
  const AttentionSpec spec_;
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

}  // namespace thinwire::cpu
