#include "tensor/cuda/crc32c.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/crc32c_polynomials.h"

namespace thinwire {

uint32_t Crc32cOf(const Crc32cParts& parts, size_t size) {
  constexpr uint32_t kWholeStretch = crc32c::PowerOfX(Crc32cParts::kStretchBytes);
  const size_t tail_bytes = size % Crc32cParts::kUnitBytes;
  uint32_t crc = 0;
  size_t stretch = 0;
  for (size_t left = size - tail_bytes; left > 0; ++stretch) {
    const size_t bytes = std::min(left, Crc32cParts::kStretchBytes);
    const uint32_t power =
        bytes == Crc32cParts::kStretchBytes ? kWholeStretch : crc32c::PowerOfX(bytes);
    crc = crc32c::Append(crc, parts.remainders[stretch], power);
    left -= bytes;
  }
  return ExtendCrc32c(crc, parts.tail, tail_bytes);
}

}  // namespace thinwire
