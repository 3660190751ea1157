// How batch norm goes over [pixels, channels]: in runs of rows that threads share, and sums of each
// channel whose order is a function of the shape, whoever computed them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tensor/tensor.h"

namespace thinwire::cpu {

// A run of rows [begin, end), each `width` elements: some pixels' channels side by side, so that
// vectors are full whatever the number of channels. After the run come `tail` < width elements
// more. Parameters are repeated to `width`.
struct Run {
  int64_t begin = 0, end = 0, width = 0, tail = 0;
};

// Of a run's rows, summed in fp32 before they go to fp64.
inline constexpr int64_t kTileRows = 64;

class ChannelRuns {
 public:
  static constexpr int64_t kLanes = 16;  // AVX-512's; a multiple of every other target's

  explicit ChannelRuns(const TensorView& x) {
    channels_ = x.dims[x.rank - 1];
    pixels_ = x.elements() / channels_;
    int64_t repeat = kLanes / std::gcd(kLanes, channels_);
    while (repeat * channels_ < 4 * kLanes) repeat *= 2;
    width_ = repeat * channels_;
    rows_ = pixels_ / repeat;
    size_ = std::clamp<int64_t>(rows_ * width_ / kMinRunElements, 1, kMaxRuns);
  }

  int64_t channels() const { return channels_; }
  int64_t pixels() const { return pixels_; }
  int64_t width() const { return width_; }
  int64_t size() const { return size_; }  // runs
  Run operator[](int64_t i) const {
    Run run{rows_ * i / size_, rows_ * (i + 1) / size_, width_, 0};
    if (i + 1 == size_) run.tail = pixels_ * channels_ - rows_ * width_;
    return run;
  }

  // Per-channel values repeated to `width`.
  template <typename Value>
  std::vector<float> RepeatEach(const Value& value) const {
    std::vector<float> repeated(width_);
    for (int64_t c = 0; c < channels_; ++c) repeated[c] = value(c);
    for (int64_t j = channels_; j < width_; ++j) repeated[j] = repeated[j - channels_];
    return repeated;
  }
  std::vector<float> Repeat(const float* values) const {
    return RepeatEach([=](int64_t c) { return values[c]; });
  }

 private:
  static constexpr int64_t kMaxRuns = 64;
  static constexpr int64_t kMinRunElements = 32 * 1024;  // 128 KiB of fp32

  int64_t channels_, pixels_, width_, rows_, size_;
};

// Two sums per column, per run, gathered to two sums per channel in a fixed order.
class ColumnSums {
 public:
  explicit ColumnSums(const ChannelRuns& runs)
      : runs_(runs), columns_(2 * runs.width() * runs.size()), channels_(2 * runs.channels()) {}

  double* first(int64_t run) { return columns_.data() + 2 * runs_.width() * run; }
  double* second(int64_t run) { return first(run) + runs_.width(); }

  void Gather() {
    for (int64_t run = 0; run < runs_.size(); ++run) {
      for (int half = 0; half < 2; ++half) {
        const double* columns = half ? second(run) : first(run);
        double* channels = channels_.data() + half * runs_.channels();
        for (int64_t j = 0; j < runs_.width(); j += runs_.channels()) {
          for (int64_t c = 0; c < runs_.channels(); ++c) channels[c] += columns[j + c];
        }
      }
    }
  }
  double first_of(int64_t channel) const { return channels_[channel]; }
  double second_of(int64_t channel) const { return channels_[runs_.channels() + channel]; }

 private:
  const ChannelRuns& runs_;
  std::vector<double> columns_, channels_;
};

}  // namespace thinwire::cpu
