// Consequences of a tensor's pre-scale exponent for fp8. Plain functions, for every backend.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "compress/half.h"
#include "compress/spec.h"

namespace thinwire {

// Returns the largest finite value: 1.75 * 2^8 or 1.75 * 2^15.
HOST_DEVICE constexpr float LargestFp8(Fp8Format format) {
  return format == Fp8Format::kE4M3 ? 448.0f : 57344.0f;
}

// Returns the least exponent. It goes with values above 1.75 * 2^127 and with no others.
HOST_DEVICE inline int LeastPreScale(Fp8Format format) {
  return PreScaleFor(FloatOf(kInfinityBits - 1), LargestFp8(format));
}

// Returns the largest valid code. With the least exponent, higher ones would decode to 2^128 and
// more.
HOST_DEVICE inline uint8_t LargestFp8Code(Fp8Format format, int exponent) {
  if (exponent == LeastPreScale(format)) return 0x77;
  return format == Fp8Format::kE4M3 ? 0x7E : 0x7B;
}

// Map from fp32 to fp8: a factor, which is a power of two, then a limit of the code (without sign).
struct Fp8Line {
  float scale;
  uint8_t largest_code;
};

}  // namespace thinwire
