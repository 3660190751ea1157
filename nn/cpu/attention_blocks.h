// Order in which attention goes over a group of heads: in blocks of positions. Their rows of
// [head_size] are copied into one thread's memory, in fp32 and padded with zeros to whole vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "hwy/aligned_allocator.h"
#include "nn/ops.h"

namespace thinwire::cpu {

inline constexpr int64_t kBlock = 64;  // positions of a block

// Memory that grows to the largest size asked for; growing loses its contents.
class AlignedFloats {
 public:
  // Returns memory for `n` floats.
  float* Fit(int64_t n) {
    if (n > size_) {
      memory_ = hwy::AllocateAligned<float>(n);
      size_ = n;
    }
    return memory_.get();
  }
  float* data() const { return memory_.get(); }

 private:
  hwy::AlignedFreeUniquePtr<float[]> memory_;
  int64_t size_ = 0;
};

// The cosines and sines of rotary positions.
class Rotation {
 public:
  explicit Rotation(const AttentionSpec& spec)
      : frequencies_(spec.frequencies,
                     spec.frequencies + (spec.frequencies == nullptr ? 0 : spec.head_size / 2)) {}

  // Fills the tables for positions below `n`. Must be called before these are asked for.
  void Prepare(int64_t n) {
    if (frequencies_.empty()) return;
    for (auto t = static_cast<int64_t>(cosines_.size() / frequencies_.size()); t < n; ++t) {
      for (const double frequency : frequencies_) {
        const double angle = static_cast<double>(t) * frequency;
        cosines_.push_back(static_cast<float>(std::cos(angle)));
        sines_.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }

  // Returns the number of planes; 0: no rotation.
  int64_t half() const { return static_cast<int64_t>(frequencies_.size()); }
  const float* cosines(int64_t t) const { return cosines_.data() + t * half(); }
  const float* sines(int64_t t) const { return sines_.data() + t * half(); }

 private:
  const std::vector<double> frequencies_;
  std::vector<float> cosines_, sines_;
};

// The heads of one sample that share a key and a value.
struct HeadGroup {
  const AttentionSpec* spec;
  const Rotation* rotation;
  int64_t positions, sample, kv_head;  // positions: number of keys
  int64_t length;                      // number of keys that all queries see, unless causal
  // First keys of the sample's queries, of which the first one is at position `origin`; null: none.
  const int32_t* first_key = nullptr;
  int64_t origin = 0;

  int64_t size() const { return spec->head_size; }
  int64_t width() const { return (size() + 15) / 16 * 16; }  // of a row in a thread's memory
  int64_t blocks() const { return (positions + kBlock - 1) / kBlock; }
  int64_t first_head() const { return kv_head * (spec->heads / spec->kv_heads); }
  int64_t last_head() const { return first_head() + spec->heads / spec->kv_heads; }
  int64_t key_head() const { return spec->heads + kv_head; }  // index among qkv's heads
  int64_t value_head() const { return key_head() + spec->kv_heads; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(size())); }
  // Returns the number of keys, the first ones, that a query sees.
  int64_t SeenBy(int64_t query) const { return spec->causal ? query + 1 : length; }
  // Returns the first key that a query sees, which later queries see at most.
  int64_t FirstSeenBy(int64_t query) const {
    const int64_t allowed = first_key == nullptr ? 0 : first_key[query - origin];
    return spec->window == 0 ? allowed : std::max(allowed, query - spec->window + 1);
  }
  // Returns the index, in the sample's dropout mask, of the first score of a query.
  uint32_t element(int64_t head, int64_t query) const {
    return static_cast<uint32_t>(((spec->first_head + head) * positions + query) * positions);
  }
};

// Positions [first, first + count) of one head of a tensor [batch, T, heads head_size] whose first
// position is `origin`. In a thread's memory they are the rows from `place` on.
struct HeadRows {
  const TensorView* x;
  int64_t head, first, count;
  bool turned;  // whether to rotate them
  int64_t origin = 0, place = 0;
};

// Work memory of one thread.
struct AttentionMemory {
  // All positions; `across` means [size, kBlock] for each block.
  AlignedFloats keys, keys_across, values, values_across;
  AlignedFloats dkeys, dvalues;
  AlignedFloats rows, queries, dy, product, scores, dscores;  // one block
};

}  // namespace thinwire::cpu
