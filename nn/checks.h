// Checks that every backend makes. InvalidArgument names the values and those wanted.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nn/ops.h"

namespace thinwire {

inline Error CheckSpec(const Conv2dSpec& spec) {
  const int64_t extent = std::min(spec.height, spec.width) + 2 * spec.padding;
  if (spec.in_channels < 1 || spec.out_channels < 1 || spec.kernel < 1 || spec.stride < 1 ||
      spec.padding < 0 || spec.kernel > extent) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "conv2d: kernel %lld, stride %lld, padding %lld do not fit [%lld, %lld, "
                     "%lld] -> %lld channels",
                     static_cast<long long>(spec.kernel), static_cast<long long>(spec.stride),
                     static_cast<long long>(spec.padding), static_cast<long long>(spec.height),
                     static_cast<long long>(spec.width), static_cast<long long>(spec.in_channels),
                     static_cast<long long>(spec.out_channels));
  }
  return Error{};
}

inline Error CheckSpec(const LinearSpec& spec) {
  if (spec.in_features < 1 || spec.out_features < 1) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, "linear: %lld -> %lld features, want at least 1",
        static_cast<long long>(spec.in_features), static_cast<long long>(spec.out_features));
  }
  return Error{};
}

// Checks that a batch's statistics are wanted together or not at all, and not of a single value,
// whose variance says nothing.
inline Error CheckBatch(const BatchNormForward& a, int64_t values) {
  if ((a.mean == nullptr) != (a.rstd == nullptr)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "batch norm: %s without %s, want both",
                     a.mean == nullptr ? "rstd" : "mean", a.mean == nullptr ? "mean" : "rstd");
  }
  if (a.mean != nullptr && values < 2) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "batch norm: %lld value(s) a channel, want at least 2 to train",
                     static_cast<long long>(values));
  }
  return Error{};
}

// Checks the rate, and that the mask of a sample can be counted by 32 bits (nn/dropout_mask.h).
inline Error CheckDropout(const Dropout& a) {
  if (!(a.rate >= 0 && a.rate < 1)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "dropout: rate %g, want one in [0, 1)",
                     static_cast<double>(a.rate));
  }
  const int64_t elements = a.x.elements();
  const int64_t of_sample = elements == 0 ? 0 : a.first_element + elements / a.x.dims[0];
  if (of_sample >> 32 != 0) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "dropout: %lld elements a sample, want fewer than 2^32",
                     static_cast<long long>(of_sample));
  }
  return Error{};
}

}  // namespace thinwire
