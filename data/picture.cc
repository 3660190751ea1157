#include "data/picture.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "data/picture_formats.h"

namespace thinwire {
namespace {

constexpr std::string_view kJpeg = "\xFF\xD8\xFF";
constexpr std::string_view kPng = "\x89PNG\r\n\x1A\n";

// Weights of Pillow's 8-bit resampling: fixed point with so many bits behind the point.
constexpr int kBits = 22;

// Weights of the pixels that make one.
struct Weights {
  int first = 0;
  std::vector<int32_t> of;
};

// Returns the weights for each of `to` pixels made of `from`.
std::vector<Weights> WeightsOf(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  const double support = std::max(scale, 1.0);  // half the triangle's base
  std::vector<Weights> all(static_cast<size_t>(to));
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - support + 0.5));
    const int last = std::min(from, static_cast<int>(centre + support + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int at = first; at < last; ++at) {
      weights.push_back(std::max(0.0, 1.0 - std::abs((at - centre + 0.5) / support)));
      sum += weights.back();
    }
    Weights& one = all[static_cast<size_t>(i)];
    one.first = first;
    for (const double weight : weights) {
      one.of.push_back(static_cast<int32_t>(0.5 + weight / sum * (1 << kBits)));
    }
  }
  return all;
}

// Returns the weighted sum of bytes that lie `step` apart.
uint8_t Mixed(const uint8_t* bytes, size_t step, const Weights& weights) {
  int32_t sum = 1 << (kBits - 1);
  for (const int32_t weight : weights.of) {
    sum += *bytes * weight;
    bytes += step;
  }
  return static_cast<uint8_t>(std::clamp(sum >> kBits, 0, 255));
}

Picture Cropped(const Picture& picture, const PictureBox& part) {
  Picture cropped{part.width, part.height, {}};
  cropped.rgb.reserve(size_t{3} * part.width * part.height);
  for (int y = 0; y < part.height; ++y) {
    const uint8_t* const begin = picture.row(part.top + y) + 3 * part.left;
    cropped.rgb.insert(cropped.rgb.end(), begin, begin + 3 * part.width);
  }
  return cropped;
}

Picture WithWidth(const Picture& picture, int width) {
  Picture resized{width, picture.height, {}};
  resized.rgb.resize(size_t{3} * width * picture.height);
  const std::vector<Weights> weights = WeightsOf(picture.width, width);
  for (int y = 0; y < picture.height; ++y) {
    for (int i = 0; i < 3 * width; ++i) {
      const Weights& of = weights[static_cast<size_t>(i / 3)];
      resized.row(y)[i] = Mixed(picture.row(y) + 3 * of.first + i % 3, 3, of);
    }
  }
  return resized;
}

Picture WithHeight(const Picture& picture, int height) {
  Picture resized{picture.width, height, {}};
  const size_t step = size_t{3} * picture.width;
  resized.rgb.resize(step * height);
  const std::vector<Weights> weights = WeightsOf(picture.height, height);
  for (int y = 0; y < height; ++y) {
    const Weights& of = weights[static_cast<size_t>(y)];
    for (size_t i = 0; i < step; ++i) {
      resized.row(y)[i] = Mixed(picture.row(of.first) + i, step, of);
    }
  }
  return resized;
}

}  // namespace

absl::Status CheckPixels(int64_t width, int64_t height) {
  if (width > 0 && height > 0 && width <= kMaxPixels / height) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("is ", width, " x ", height, " pixels, want 1 to ", kMaxPixels, " in all"));
}

absl::StatusOr<Picture> DecodePicture(std::string_view bytes) {
  if (bytes.substr(0, kJpeg.size()) == kJpeg) return DecodeJpeg(bytes);
  if (bytes.substr(0, kPng.size()) == kPng) return DecodePng(bytes);
  return absl::InvalidArgumentError("is no JPEG and no PNG");
}

Picture Resized(const Picture& picture, const PictureBox& part, int width, int height) {
  assert(part.width > 0 && part.height > 0 && part.left + part.width <= picture.width &&
         part.top + part.height <= picture.height);
  Picture resized = Cropped(picture, part);
  if (width != part.width) resized = WithWidth(resized, width);
  return height == part.height ? resized : WithHeight(resized, height);
}

}  // namespace thinwire
