// What a tensor's pre-scale exponent makes of fp8. Plain functions, for every backend.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "compress/half.h"
#include "compress/spec.h"

namespace thinwire {

// The largest finite value: 1.75 * 2^8 or 1.75 * 2^15.
HOST_DEVICE constexpr float LargestFp8(Fp8Format format) {
  return format == Fp8Format::kE4M3 ? 448.0f : 57344.0f;
}

// The least exponent goes with values above 1.75 * 2^127 and is met by no other.
HOST_DEVICE inline int LeastPreScale(Fp8Format format) {
  return PreScaleFor(FloatOf(kInfinityBits - 1), LargestFp8(format));
}

// With the least exponent, codes above this one would decode to 2^128 and more.
HOST_DEVICE inline uint8_t LargestFp8Code(Fp8Format format, int exponent) {
  if (exponent == LeastPreScale(format)) return 0x77;
  return format == Fp8Format::kE4M3 ? 0x7E : 0x7B;
}

// How fp32 becomes fp8: times a power of two, then no code (without its sign) above this one.
struct Fp8Line {
  float scale;
  uint8_t largest_code;
};

}  // namespace thinwire
