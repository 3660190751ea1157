// Pictures as files have them: decoding of JPEG and PNG, and resizing as Pillow does it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// A picture, row by row from the top, three bytes (red, green, blue) a pixel.
struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;

  const uint8_t* row(int y) const { return &rgb[static_cast<size_t>(y) * width * 3]; }
  uint8_t* row(int y) { return &rgb[static_cast<size_t>(y) * width * 3]; }
};

// Largest number of a picture's pixels.
inline constexpr int64_t kMaxPixels = int64_t{1} << 26;

// Decodes a JPEG or PNG file. Grey and palettes become RGB, and transparency is left out; neither
// EXIF's orientation nor a colour profile or gamma counts. InvalidArgument says what the bytes are,
// or what is broken in them: other formats, CMYK, 16 bits a channel, more than kMaxPixels, or a
// JPEG that ends too early or has more than 500 scans. A JPEG that is damaged otherwise is decoded
// as far as it can be, as by Pillow.
absl::StatusOr<Picture> DecodePicture(std::string_view bytes);

// Part of a picture, in pixels.
struct PictureBox {
  int64_t left = 0, top = 0;
  int width = 0, height = 0;
};

// Resizes a part of a picture to `width` times `height`, as Pillow's Image.crop and then
// resize(BILINEAR) do: a triangle over as many pixels as it shrinks by, first along rows. The part
// lies within the picture and is not empty.
Picture Resized(const Picture& picture, const PictureBox& part, int width, int height);

// Returns the part `wanted` of a whole picture that is resized to `width` times `height`, of which
// no other pixels are made.
Picture ResizedPart(const Picture& picture, int64_t width, int64_t height,
                    const PictureBox& wanted);

}  // namespace thinwire
