// blockwise8's codebook: the 256 values of dynamic tree quantisation, ascending.
//
//   +-fp32((2^(i+1) + 9 (2j + 1)) / (2^(i+1) 10^(7-i)))   for i = 0 to 6 and j = 0 to 2^i - 1
//   0 and 1
//
// Numerator and denominator are fp32 numbers, so each value is one correctly rounded division: the
// middles of 2^i equal parts of [0.1, 1], times 10^(i-6).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace thinwire {

constexpr int kZeroCode = 127;  // of the value 0; 1 is the last

std::array<float, 256> CodebookValues();

// codes[i] = index of the value nearest to fp32(x[i] / absmax), the lower one in a tie; kZeroCode
// if absmax is 0. Requires |x[i]| <= absmax, finite.
void NearestCodes(const float* x, size_t n, float absmax, uint8_t* codes);

// x[i] = value of codes[i], times absmax.
void ValuesOfCodes(const uint8_t* codes, size_t n, float absmax, float* x);

}  // namespace thinwire
