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

// Returns the weights of `count` pixels, from number `begin` on, of the `to` that are made of
// `from`.
std::vector<Weights> WeightsOf(int from, int64_t to, int64_t begin, int count) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);  // half the triangle's base
  const double steepness = 1 / support;         // a factor, as in Pillow: a quotient differs
  std::vector<Weights> all(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const double centre = (static_cast<double>(begin + i) + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - support + 0.5));
    const int last = std::min(from, static_cast<int>(centre + support + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int at = first; at < last; ++at) {
      weights.push_back(std::max(0.0, 1.0 - std::abs((at - centre + 0.5) * steepness)));
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

// Mixes pixels of a part's rows.
Picture WithColumns(const Picture& picture, const PictureBox& part,
                    const std::vector<Weights>& columns) {
  const auto width = static_cast<int>(columns.size());
  Picture mixed{width, part.height, {}};
  mixed.rgb.resize(size_t{3} * width * part.height);
  for (int y = 0; y < part.height; ++y) {
    const uint8_t* const from = picture.row(static_cast<int>(part.top) + y) + 3 * part.left;
    for (int i = 0; i < 3 * width; ++i) {
      const Weights& of = columns[static_cast<size_t>(i / 3)];
      mixed.row(y)[i] = Mixed(from + 3 * of.first + i % 3, 3, of);
    }
  }
  return mixed;
}

// Mixes rows of a picture, which begins with row number `first` of those that `rows` mean.
Picture WithRows(const Picture& picture, int first, const std::vector<Weights>& rows) {
  const auto height = static_cast<int>(rows.size());
  Picture mixed{picture.width, height, {}};
  const size_t step = size_t{3} * picture.width;
  mixed.rgb.resize(step * height);
  for (int y = 0; y < height; ++y) {
    const Weights& of = rows[static_cast<size_t>(y)];
    for (size_t i = 0; i < step; ++i) {
      mixed.row(y)[i] = Mixed(picture.row(of.first - first) + i, step, of);
    }
  }
  return mixed;
}

// Mixes pixels of a part; rows that none of `rows` needs are left out.
Picture MixedOf(const Picture& picture, PictureBox part, const std::vector<Weights>& columns,
                const std::vector<Weights>& rows) {
  const int first = rows.front().first;
  part.top += first;
  part.height = rows.back().first + static_cast<int>(rows.back().of.size()) - first;
  return WithRows(WithColumns(picture, part, columns), first, rows);
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
  return MixedOf(picture, part, WeightsOf(part.width, width, 0, width),
                 WeightsOf(part.height, height, 0, height));
}

Picture ResizedPart(const Picture& picture, int64_t width, int64_t height,
                    const PictureBox& wanted) {
  assert(wanted.width > 0 && wanted.height > 0 && wanted.left + wanted.width <= width &&
         wanted.top + wanted.height <= height);
  return MixedOf(picture, {0, 0, picture.width, picture.height},
                 WeightsOf(picture.width, width, wanted.left, wanted.width),
                 WeightsOf(picture.height, height, wanted.top, wanted.height));
}

}  // namespace thinwire
