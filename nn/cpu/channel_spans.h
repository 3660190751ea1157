// Order in which batch norm goes over [pixels, channels]: in spans of rows that threads share. The
// order of each channel's sum depends only on the shape, not on the threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tensor/tensor.h"

namespace thinwire::cpu {

// A span of rows [begin, end), each `width` elements. A row has the channels of several pixels side
// by side, so that vectors are full for any number of channels. `tail` < width more elements follow
// the span. Parameters are repeated to `width`.
struct Span {
  int64_t begin = 0, end = 0, width = 0, tail = 0;
};

// Rows of a span that are summed in fp32 before their sums go to fp64.
inline constexpr int64_t kTileRows = 64;

class ChannelSpans {
 public:
  static constexpr int64_t kLanes = 16;  // AVX-512's; a multiple of every other target's

  explicit ChannelSpans(const TensorView& x) {
    channels_ = x.dims[x.rank - 1];
    pixels_ = x.elements() / channels_;
    int64_t repeat = kLanes / std::gcd(kLanes, channels_);
    while (repeat * channels_ < 4 * kLanes) repeat *= 2;
    width_ = repeat * channels_;
    rows_ = pixels_ / repeat;
    size_ = std::clamp<int64_t>(rows_ * width_ / kMinSpanElements, 1, kMaxSpans);
  }

  int64_t channels() const { return channels_; }
  int64_t pixels() const { return pixels_; }
  int64_t width() const { return width_; }
  int64_t size() const { return size_; }  // number of spans
  // Returns span `i`; the last one has the tail.
  Span operator[](int64_t i) const {
    Span span{rows_ * i / size_, rows_ * (i + 1) / size_, width_, 0};
    if (i + 1 == size_) span.tail = pixels_ * channels_ - rows_ * width_;
    return span;
  }

  // Returns per-channel values repeated to `width`.
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
  static constexpr int64_t kMaxSpans = 64;
  static constexpr int64_t kMinSpanElements = 32 * 1024;  // 128 KiB of fp32

  int64_t channels_, pixels_, width_, rows_, size_;
};

// Two sums per column and span, which Gather adds to two sums per channel in a fixed order.
class ColumnSums {
 public:
  explicit ColumnSums(const ChannelSpans& spans)
      : spans_(spans),
        columns_(2 * spans.width() * spans.size()),
        channels_(2 * spans.channels()) {}

  // These return the sums of a span, one for each column.
  double* first(int64_t span) { return columns_.data() + 2 * spans_.width() * span; }
  double* second(int64_t span) { return first(span) + spans_.width(); }

  // Adds the columns of all spans to channels.
  void Gather() {
    for (int64_t span = 0; span < spans_.size(); ++span) {
      for (int half = 0; half < 2; ++half) {
        const double* columns = half ? second(span) : first(span);
        double* channels = channels_.data() + half * spans_.channels();
        for (int64_t j = 0; j < spans_.width(); j += spans_.channels()) {
          for (int64_t c = 0; c < spans_.channels(); ++c) channels[c] += columns[j + c];
        }
      }
    }
  }
  // These return the sums of a channel after Gather.
  double first_of(int64_t channel) const { return channels_[channel]; }
  double second_of(int64_t channel) const { return channels_[spans_.channels() + channel]; }

 private:
  const ChannelSpans& spans_;
  std::vector<double> columns_, channels_;
};

}  // namespace thinwire::cpu
