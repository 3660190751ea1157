// The sum of squares of a gradient, for its norm.
#pragma once

#include <cstdint>

namespace thinwire::cpu {

// In fp64, in one order for every thread count and instruction set: element i goes to sum i mod 32
// of its block of 8192; these are added in ascending order, then the blocks.
double SumOfSquares(int threads, const float* values, int64_t n);

}  // namespace thinwire::cpu
