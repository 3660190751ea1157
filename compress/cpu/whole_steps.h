// Conversion of values to whole numbers of steps, and back: the loops of ecsq.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/layout.h"
#include "compress/spec.h"

namespace thinwire {

// Sums over the values whose code has magnitude m, for m = 1, 2, ... kMeans: their number, and how
// far they lie above the magnitude in all, in units of 2^-16 steps.
struct CellSums {
  int64_t count[kMeans] = {};
  int64_t fractions[kMeans] = {};
};

// Writes the code of each y = x[i] / step and the byte that stands for it. Roundings:
//   nearest          to nearest, ties to even
//   nearest_nonzero  likewise, but with a magnitude of at least 1 unless y is 0
//   stochastic       up with the probability of the fraction, as quantize.h
//   dither           to nearest of y plus Dither(random[i])
//   dead_zone        magnitude floor(|y| + 1/3)
// `random` is for stochastic and dither only. Adds to *sums unless it is null. Returns the largest
// zigzag of a code. Requires step > 0.
uint32_t ToWholeSteps(const float* x, size_t n, float step, Rounding rounding,
                      const uint32_t* random, int32_t* codes, uint8_t* bytes, CellSums* sums);

// Sets x[i] = (code + mean of its magnitude - Dither(random[i])) * step, clipped to finite numbers
// of bf16, for the codes that the bytes stand for; kEscape counts as a code. `means` has the means
// of kMeans magnitudes, in steps, or zeros. There is no noise if `random` is null. Returns the
// largest byte.
uint8_t FromWholeSteps(const uint8_t* bytes, size_t n, float step, const float* means,
                       const uint32_t* random, float* x);

// Chooses the codes in `bytes` anew. Candidates are the magnitude nearest to |x[i] / step|, at most
// 127, and those one and two below it. A candidate costs the square of its error in steps, with the
// mean of its magnitude, plus costs[256 sums[i] + its byte]. The cheapest is taken, of equals the
// largest. A byte that is kEscape stays. Adds to *cells. Requires step > 0.
void CheapestSteps(const float* x, size_t n, float step, const float* means, const uint8_t* sums,
                   const float* costs, uint8_t* bytes, CellSums* cells);

// Returns how many of the bytes are kEscape.
int64_t CountEscapes(const uint8_t* bytes, int64_t n);

}  // namespace thinwire
