// Outliers of a tensor that crosses a cut: channels, and the first position of sequences, that are
// far larger than the rest, as pretrained language models have them. A grid that reaches up to them
// has few levels where all others are.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace thinwire {

// Ratio of mean squares from which a channel, or the first position, is an outlier.
constexpr double kOutlierRatio = 30;

// Most channels that are proposed: each costs 16 bits a row. Where far more are outliers, they are
// the rule, and a finer scope, a rotation or more bits do what outliers cannot.
constexpr int64_t kMostProposed = 16;
constexpr int64_t kChannelsForOne = 50;  // one is proposed for so many channels

// Outliers that were found. Ratios are to the median channel, and to all other positions.
struct FoundOutliers {
  int64_t channels = 0, of_channels = 0;  // number of outliers, and of all channels
  double channel_ratio = 0;               // of the largest channel
  double first_position_ratio = 0;        // 0 unless the tensor has sequences of several positions

  bool has_first_position() const { return first_position_ratio >= kOutlierRatio; }
  bool any() const { return channels > 0 || has_first_position(); }
  // Returns the number of channels to set apart: those found, but at most 2 % of all, or one.
  int64_t proposed() const;

  // Returns what was found and the setting for it, for instance "4 of 576 channels have a mean
  // square of 30 to 812 times the median channel's; outliers: 4 sends them as bf16, beside the
  // others". Of more than are proposed it says that these are the largest.
  std::string ToString() const;
};

// Looks for outliers of x, [samples, ..., channels]. Channels are compared without first positions
// that are outliers.
absl::StatusOr<FoundOutliers> FindOutliers(const Tensor& x);

}  // namespace thinwire
