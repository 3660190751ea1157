#include "compress/file_values.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "compress/half.h"

namespace thinwire {
namespace {

// Bits: one of sign, five of exponent, ten of mantissa. The largest exponent is that of infinity,
// or with a mantissa of NaN.
float FromF16(uint16_t half) {
  const uint32_t magnitude = half & 0x7FFF, infinity = 0x1F << 10;
  const float sign = half >> 15 != 0 ? -1.0f : 1.0f;
  if (magnitude >= infinity) return sign * (magnitude == infinity ? HUGE_VALF : NAN);
  return sign * FromHalf(static_cast<uint16_t>(magnitude));
}

}  // namespace

bool IsFloat(std::string_view dtype) { return dtype == "F32" || dtype == "F16" || dtype == "BF16"; }

std::vector<float> Widened(std::string_view dtype, std::string_view bytes) {
  std::vector<float> values(bytes.size() / (dtype == "F32" ? sizeof(float) : sizeof(uint16_t)));
  if (values.empty()) return values;
  if (dtype == "F32") {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half;
    std::memcpy(&half, bytes.data() + i * sizeof(half), sizeof(half));
    values[i] = dtype == "F16" ? FromF16(half) : FromBFloat(half);
  }
  return values;
}

}  // namespace thinwire
