// Conversions to and from fp16 and bf16 in plain integer arithmetic, so that every machine and GPU
// gives the same bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/host_device.h"

namespace thinwire {

// Reinterpret a float's bits as an integer, and back.
HOST_DEVICE inline uint32_t BitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
HOST_DEVICE inline float FloatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

constexpr uint32_t kMagnitudeMask = 0x7FFFFFFFu;  // |x| as an ordered integer
constexpr uint32_t kInfinityBits = 0x7F800000u;   // magnitudes from here on are not finite
constexpr float kMaxHalf = 65504.0f;
constexpr float kMaxBFloat = 0x1.FEp127f;

// Rounds to bf16, to nearest even: adding 0x7FFF, and the lowest bit that stays, carries into the
// upper half exactly where nearest even rounds up. A NaN stays a (quiet) NaN: 0x40 is its upper
// mantissa bit.
HOST_DEVICE inline uint16_t ToBFloat(float x) {
  const uint32_t bits = BitsOf(x);
  if ((bits & kMagnitudeMask) > kInfinityBits) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
HOST_DEVICE inline float FromBFloat(uint16_t b) { return FloatOf(static_cast<uint32_t>(b) << 16); }

// Rounds to fp16, to nearest even. Requires 0 <= x <= kMaxHalf.
HOST_DEVICE inline uint16_t ToHalf(float x) {
  // Adding 0.5 lets the adder round a value below the normal halves at its last bit, 2^-24.
  if (x < 0x1p-14f) return static_cast<uint16_t>(BitsOf(x + 0.5f) - BitsOf(0.5f));
  // fp32's exponent bias is 112 above fp16's, and its mantissa has 13 bits more, which are rounded
  // away as in ToBFloat.
  const uint32_t bits = BitsOf(x) - (112u << 23);
  return static_cast<uint16_t>((bits + 0xFFF + ((bits >> 13) & 1)) >> 13);
}
// Returns the value of a finite half h >= 0.
HOST_DEVICE inline float FromHalf(uint16_t h) {
  if (h < 0x400) return h * 0x1p-24f;
  return FloatOf((static_cast<uint32_t>(h) << 13) + (112u << 23));
}

// Returns the pre-scale exponent e: a short type travels multiplied by 2^e. It is the largest e up
// to 126 that keeps `largest` (finite, >= 0) at or below `most`, the type's largest value. So tiny
// gradients survive and no finite value overflows. For fp16 e is -113 or more.
constexpr int kLeastPreScale = -113, kMostPreScale = 126;
HOST_DEVICE inline int16_t PreScaleFor(float largest, float most = kMaxHalf) {
  if (largest == 0) return 0;
  int exponent, most_exponent;
  const float fraction = std::frexp(largest, &exponent);
  const float most_fraction = std::frexp(most, &most_exponent);
  const int e = (fraction <= most_fraction ? most_exponent : most_exponent - 1) - exponent;
  return static_cast<int16_t>(e < kMostPreScale ? e : kMostPreScale);
}
// Returns 2^e. Requires -126 <= e <= 127.
HOST_DEVICE inline float PowerOfTwo(int e) { return FloatOf(static_cast<uint32_t>(e + 127) << 23); }

}  // namespace thinwire
