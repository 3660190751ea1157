// Codebook of blockwise8: the 256 values of dynamic tree quantisation, ascending, and the table
// with which every backend finds the nearest.
//
//   +-fp32((2^(i+1) + 9 (2j + 1)) / (2^(i+1) 10^(7-i)))   for i = 0 to 6 and j = 0 to 2^i - 1
//   0 and 1
//
// Numerator and denominator are fp32 numbers, so each value is one correctly rounded division. The
// values are the middles of 2^i equal parts of [0.1, 1], times 10^(i-6).
#pragma once

#include <array>
#include <cstdint>

namespace thinwire {

constexpr int kZeroCode = 127;  // code of the value 0; the value 1 is the last

// Returns the values, ascending.
std::array<float, 256> CodebookValues();

// Constants of the search for the value nearest to t, which takes one look at the upper bits of |t|
// and one addition.
//
// A magnitude has a rank p from 0 (zero) to 128 (one); the code is kZeroCode plus or minus the
// rank. The floats from 2^-22 to 1 fall into buckets of equal upper 15 bits (exponent and six bits
// of fraction). Buckets are so small that each holds at most one limit between two ranks.
//
// A bucket's entry is (p << 17) + (2^17 - 1 - low), where p is its least rank and `low` are the
// lower 17 bits of its limit. Adding the lower 17 bits of |t| carries into the rank iff they are
// above `low`.
constexpr int kCodebookLowBits = 17;
constexpr int32_t kCodebookLowMask = (1 << kCodebookLowBits) - 1;
constexpr int32_t kCodebookLeastBits = (127 - 22) << 23;  // of 2^-22, still nearest to zero
constexpr int32_t kCodebookOneBits = 127 << 23;
constexpr int32_t kCodebookFirstBucket = kCodebookLeastBits >> kCodebookLowBits;
constexpr int32_t kCodebookBuckets =
    (kCodebookOneBits >> kCodebookLowBits) - kCodebookFirstBucket + 1;

// Entries for positive values, then for negative ones, whose ties go to the larger magnitude.
struct CodebookTable {
  int32_t entries[2 * kCodebookBuckets];
};
const CodebookTable& TheCodebookTable();

}  // namespace thinwire
