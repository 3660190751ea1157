// Arrays between fp32 and 8-bit floats, the same bits on every SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"

namespace thinwire {

// The largest finite value: 1.75 * 2^8 or 1.75 * 2^15.
constexpr float LargestFp8(Fp8Format format) {
  return format == Fp8Format::kE4M3 ? 448.0f : 57344.0f;
}

// How fp32 becomes fp8: times a power of two, then no code (without its sign) above this one.
struct Fp8Line {
  float scale;
  uint8_t largest_code;
};

// codes[i] = sign and min(fp8 of |x[i]| * scale, largest_code), to nearest even. x is finite and
// x * scale at most LargestFp8.
void NarrowToFp8(const float* x, size_t n, Fp8Format format, const Fp8Line& line, uint8_t* codes);

// x[i] = scale * codes[i]. Returns the largest code without its sign: the caller refuses those that
// are no number, for which x is unspecified.
uint8_t WidenFp8(const uint8_t* codes, size_t n, Fp8Format format, float scale, float* x);

}  // namespace thinwire
