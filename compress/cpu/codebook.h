// Arrays between fp32 and the codes of blockwise8's codebook, the same bits on every SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/codebook_table.h"

namespace thinwire {

// codes[i] = index of the value nearest to fp32(x[i] / absmax), the lower one in a tie; kZeroCode
// if absmax is 0. Requires |x[i]| <= absmax, finite.
void NearestCodes(const float* x, size_t n, float absmax, uint8_t* codes);

// x[i] = value of codes[i], times absmax.
void ValuesOfCodes(const uint8_t* codes, size_t n, float absmax, float* x);

}  // namespace thinwire
