// Conversions of arrays between fp32 and 8-bit floats, with the same bits on every SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/fp8_line.h"
#include "compress/spec.h"

namespace thinwire {

// Sets codes[i] to the sign of x[i] and min(fp8 of |x[i]| * scale, largest_code), to nearest even.
// Requires x[i] finite, and x[i] * scale at most LargestFp8.
void NarrowToFp8(const float* x, size_t n, Fp8Format format, const Fp8Line& line, uint8_t* codes);

// Sets x[i] = scale * codes[i]. Returns the largest code without its sign. The caller refuses codes
// that are no number, for which x is unspecified.
uint8_t WidenFp8(const uint8_t* codes, size_t n, Fp8Format format, float scale, float* x);

}  // namespace thinwire
