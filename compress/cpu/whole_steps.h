// Values to whole numbers of steps, and back: the loops of ecsq.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/layout.h"
#include "compress/spec.h"

namespace thinwire {

// Of the values whose code is of magnitude 1, 2, ... kMeans: how many, and by how many 2^-16 steps
// they lie above it.
struct CellSums {
  int64_t count[kMeans] = {};
  int64_t fractions[kMeans] = {};
};

// codes[i] of y = x[i] / step, and the byte that stands for it. nearest: to nearest, ties to even;
// nearest_nonzero: so, but with a magnitude of at least 1 unless y is 0; stochastic: up with the
// probability of the fraction, as quantize.h; dither: to nearest of y plus Dither(random[i]);
// dead_zone: the magnitude down from |y| + 1/3. `random`: of stochastic and dither only. Adds to
// *sums if that is not null. Returns the largest zigzag of a code. Requires step > 0.
uint32_t ToWholeSteps(const float* x, size_t n, float step, Rounding rounding,
                      const uint32_t* random, int32_t* codes, uint8_t* bytes, CellSums* sums);

// x[i] = (code + mean of its magnitude - Dither(random[i])) * step, clipped to finite numbers of
// bf16, of the codes that the bytes stand for; kEscape counts as a code. `means`: of kMeans
// magnitudes, in steps, or zeros. Null `random`: no noise. Returns the largest byte.
uint8_t FromWholeSteps(const uint8_t* bytes, size_t n, float step, const float* means,
                       const uint32_t* random, float* x);

// The bytes of codes chosen anew: of the magnitudes nearest to |x[i] / step|, at most 127, and one
// and two below it the one that costs least, the square of its error in steps, with the mean of its
// magnitude, plus costs[256 sums[i] + its byte]; of equals the largest. A byte that is kEscape
// stays. Adds to *cells. Requires step > 0.
void CheapestSteps(const float* x, size_t n, float step, const float* means, const uint8_t* sums,
                   const float* costs, uint8_t* bytes, CellSums* cells);

// How many of the bytes are kEscape.
int64_t CountEscapes(const uint8_t* bytes, int64_t n);

}  // namespace thinwire
