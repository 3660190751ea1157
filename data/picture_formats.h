// Decoders of pictures' formats; picture.h chooses among them.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "data/picture.h"

namespace thinwire {

// Return InvalidArgument where it is no picture, or has too many pixels.
absl::Status CheckPixels(int64_t width, int64_t height);

// Decode a file that begins like one of the format. Errors of DecodePicture.
absl::StatusOr<Picture> DecodeJpeg(std::string_view bytes);
absl::StatusOr<Picture> DecodePng(std::string_view bytes);

}  // namespace thinwire
