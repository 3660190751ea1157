// Checks that every backend's attention makes. InvalidArgument names the value and those wanted.
#pragma once

#include <cstdint>

#include "nn/ops.h"

namespace thinwire {

// Checks heads, sizes, rotary positions and the dropout rate.
inline Error CheckSpec(const AttentionSpec& spec) {
  if (spec.heads < 1 || spec.kv_heads < 1 || spec.heads % spec.kv_heads != 0 ||
      spec.head_size < 1) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        "attention: %lld heads of %lld in groups of %lld keys, want at least 1 each and "
        "a multiple of the keys",
        static_cast<long long>(spec.heads), static_cast<long long>(spec.head_size),
        static_cast<long long>(spec.kv_heads));
  }
  if (spec.frequencies != nullptr && spec.head_size % 2 != 0) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "attention: rotary positions with heads of %lld, want an even size",
                     static_cast<long long>(spec.head_size));
  }
  if (!(spec.dropout >= 0 && spec.dropout < 1)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "attention: dropout %g, want a rate in [0, 1)",
                     static_cast<double>(spec.dropout));
  }
  if (spec.window < 0 || (spec.window > 0 && !spec.causal)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "attention: a window of %lld with causal %s, want 0, or at least 1 with true",
                     static_cast<long long>(spec.window), spec.causal ? "true" : "false");
  }
  return Error{};
}

// Checks that the mask of a sample can be counted by 32 bits (nn/dropout_mask.h).
inline Error CheckDropout(const AttentionSpec& spec, int64_t positions) {
  const int64_t heads = spec.first_head + spec.heads;
  if (spec.dropout > 0 && heads * positions * positions > int64_t{UINT32_MAX}) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "attention: dropout over %lld heads and %lld positions, want fewer than "
                     "2^32 scores a sample",
                     static_cast<long long>(heads), static_cast<long long>(positions));
  }
  return Error{};
}

// Checks that attention with a cache is causal: other positions would see those yet to come.
inline Error CheckCausal(const AttentionSpec& spec) {
  if (spec.causal) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "attention: causal is false with a cache, want true");
}

// Checks that causal attention is given no lengths.
inline Error CheckLengths(const AttentionSpec& spec, const int32_t* lengths) {
  if (!spec.causal || lengths == nullptr) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "attention: lengths of samples with causal true, want false");
}

// Checks that attention which is not causal is given no first keys.
inline Error CheckFirstKey(const AttentionSpec& spec, const int32_t* first_key) {
  if (spec.causal || first_key == nullptr) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "attention: first keys of queries with causal false, want true");
}

// Checks that training with a cache has no dropout.
inline Error CheckNoDropout(const AttentionSpec& spec) {
  if (spec.dropout > 0) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "attention: dropout %g in training with a cache, want 0",
                     static_cast<double>(spec.dropout));
  }
  return Error{};
}

// Checks that the positions from `first` on and before `end` lie within the context.
inline Error CheckContext(int64_t first, int64_t end, int64_t context) {
  if (first < 0 || end > context) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "attention: positions %lld to %lld, want them within a context of %lld",
                     static_cast<long long>(first), static_cast<long long>(end - 1),
                     static_cast<long long>(context));
  }
  return Error{};
}

}  // namespace thinwire
