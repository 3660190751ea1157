// Decodes any bytes as a picture. They must be refused, or give a picture that can be resized.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "data/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto picture =
      thinwire::DecodePicture(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!picture.ok()) return 0;
  const size_t bytes = size_t{3} * picture->width * picture->height;
  if (picture->width < 1 || picture->height < 1 || picture->rgb.size() != bytes) std::abort();
  const thinwire::PictureBox part = {picture->width / 2, 0, (picture->width + 1) / 2,
                                     picture->height};
  if (thinwire::Resized(*picture, part, 5, 9).rgb.size() != 5 * 9 * 3) std::abort();
  return 0;
}
