// Conversions to and from fp16 times a power of two (compress/cpu/loops.h) in a kernel, with the
// same bits. A NaN is never multiplied, because a GPU would change its bits.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/half.h"

namespace thinwire {

// Returns the half of scale * x, with sign, infinity and NaN. Finite values above 0x1.FFCp127 count
// as that.
__device__ inline uint16_t ScaledHalf(float x, float scale) {
  constexpr uint32_t kMostRoundable = 0x7F7FE000u;
  const uint32_t bits = __float_as_uint(x);
  // The sign goes from bit 31 to bit 15; 0x7E00 is a NaN, 0x7C00 infinity, and 143 << 23 are the
  // bits of 65536, the least magnitude that rounds to it.
  const uint32_t sign = (bits & ~kMagnitudeMask) >> 16;
  uint32_t magnitude = bits & kMagnitudeMask;
  if (magnitude > kInfinityBits) return static_cast<uint16_t>(sign | 0x7E00u);
  if (magnitude > kMostRoundable && magnitude < kInfinityBits) magnitude = kMostRoundable;
  const float scaled = __uint_as_float(magnitude) * scale;
  if (__float_as_uint(scaled) >= 143u << 23) return static_cast<uint16_t>(sign | 0x7C00u);
  return static_cast<uint16_t>(sign | ToHalf(scaled));
}

// Returns scale * h.
__device__ inline float ScaledOfHalf(uint16_t h, float scale) {
  // The sign goes from bit 15 to bit 31. A NaN keeps its mantissa, 13 bits further up, and is made
  // quiet by the mantissa's highest bit.
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7FFFu;
  if (magnitude > 0x7C00u) {
    return __uint_as_float(sign | (magnitude << 13) | kInfinityBits | 0x00400000u);
  }
  if (magnitude == 0x7C00u) return __uint_as_float(sign | kInfinityBits);
  return __uint_as_float(sign | __float_as_uint(FromHalf(magnitude) * scale));
}

}  // namespace thinwire
