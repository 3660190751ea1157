// Computes the sum of squares of a gradient, for its norm.
#pragma once

#include <cstdint>

namespace thinwire::cpu {

// Returns the sum in fp64, in the same order for every thread count and instruction set. Element i
// is added to sum i mod 32 of its block of 8192. These sums are added in ascending order, then the
// blocks.
double SumOfSquares(int threads, const float* values, int64_t n);

}  // namespace thinwire::cpu
