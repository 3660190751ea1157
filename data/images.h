// A dataset of 8-bit images in memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace thinwire {

// Shape and normalisation of the images.
struct ImageFormat {
  int64_t height = 0, width = 0, channels = 0;
  int64_t classes = 0;
  // A raw pixel p of channel c becomes (p / white - mean[c]) / deviation[c]. Each step is rounded
  // to fp32, as in torchvision's ToTensor and Normalize.
  float white = 255;
  std::vector<float> mean, deviation;
  int crop_padding = 0;
  bool may_flip = false;

  int64_t pixels() const { return height * width; }
  Shape sample_shape() const { return {1, height, width, channels}; }
};

// The data set.
class ImageDataset final : public Dataset {
 public:
  // `raw` is [sample, height, width, channels]; `labels` has one entry per sample, below classes.
  // `digest` identifies both.
  ImageDataset(ImageFormat format, std::vector<uint8_t> raw, std::vector<uint8_t> labels,
               uint64_t digest);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t classes() const override { return format_.classes; }
  Shape sample_shape() const override { return format_.sample_shape(); }
  void Labels(int64_t sample, const Augmentation& augmentation,
              absl::Span<int32_t> out) const override;
  void Load(int64_t sample, const Augmentation& augmentation, absl::Span<float> out) const override;
  uint64_t digest() const override { return digest_; }
  int crop_padding() const override { return format_.crop_padding; }
  bool may_flip() const override { return format_.may_flip; }

 private:
  const ImageFormat format_;
  const std::vector<uint8_t> raw_, labels_;
  const uint64_t digest_;
  std::vector<std::array<float, 256>> normalised_;  // [channel][raw pixel]
};

}  // namespace thinwire
