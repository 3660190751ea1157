// Conversions of arrays between fp32 and codes of blockwise8's codebook, with the same bits on
// every SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/codebook_table.h"

namespace thinwire {

// Sets codes[i] to the index of the value nearest to fp32(x[i] / absmax), the lower one in a tie;
// to kZeroCode if absmax is 0. Requires |x[i]| <= absmax, finite.
void NearestCodes(const float* x, size_t n, float absmax, uint8_t* codes);

// Sets x[i] to the value of codes[i] times absmax.
void ValuesOfCodes(const uint8_t* codes, size_t n, float absmax, float* x);

}  // namespace thinwire
