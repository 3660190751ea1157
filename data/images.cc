#include "data/images.h"

#include <cassert>
#include <utility>

namespace thinwire {

ImageDataset::ImageDataset(ImageFormat format, std::vector<uint8_t> raw,
                           std::vector<uint8_t> labels, uint64_t digest)
    : format_(std::move(format)),
      raw_(std::move(raw)),
      labels_(std::move(labels)),
      digest_(digest),
      normalised_(format_.channels) {
  assert(raw_.size() == labels_.size() * format_.pixels() * format_.channels);
  for (int64_t c = 0; c < format_.channels; ++c) {
    for (int p = 0; p < 256; ++p) {
      const float scaled = static_cast<float>(p) / format_.white;
      normalised_[c][p] = (scaled - format_.mean[c]) / format_.deviation[c];
    }
  }
}

void ImageDataset::Labels(int64_t sample, const Augmentation&, absl::Span<int32_t> out) const {
  assert(0 <= sample && sample < size() && out.size() == 1);
  out[0] = labels_[sample];
}

void ImageDataset::Load(int64_t sample, const Augmentation& augmentation,
                        absl::Span<float> out) const {
  const int64_t height = format_.height, width = format_.width, channels = format_.channels;
  assert(0 <= sample && sample < size());
  assert(static_cast<int64_t>(out.size()) == height * width * channels);
  const uint8_t* image = raw_.data() + sample * height * width * channels;
  float* to = out.data();
  for (int64_t y = 0; y < height; ++y) {
    const int64_t from_y = y + augmentation.dy;
    for (int64_t x = 0; x < width; ++x) {
      const int64_t from_x = (augmentation.flip ? width - 1 - x : x) + augmentation.dx;
      const bool inside = 0 <= from_y && from_y < height && 0 <= from_x && from_x < width;
      const uint8_t* pixel = image + (inside ? (from_y * width + from_x) * channels : 0);
      for (int64_t c = 0; c < channels; ++c) *to++ = normalised_[c][inside ? pixel[c] : 0];
    }
  }
}

}  // namespace thinwire
