// One pass over an array that finds its range, and whether every value is finite.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/tensor.h"

namespace thinwire {

// Extremes of some values; min > max if there are none. If `magnitude` is not finite, the other two
// mean nothing.
struct ValueRange {
  float min = 3.402823466e38f;
  float max = -3.402823466e38f;
  uint32_t magnitude = 0;  // bits of the largest |x|; at least kInfinityBits if any is not finite
};

// Adds the values of x[0, n) to *range.
void AddToRange(const float* x, size_t n, ValueRange* range);

// Updates element by element: min[i] = min(min[i], x[i]), max likewise. Returns the largest
// magnitude bits.
uint32_t AddToRanges(const float* x, size_t n, float* min, float* max);

// Return the bits of the largest |x|, and of the largest finite |x|; 0 if there is none.
uint32_t LargestMagnitude(const float* x, size_t n);
uint32_t LargestFiniteMagnitude(const float* x, size_t n);

// Return LargestMagnitude, found by `threads` threads, and that of x[begin, end).
uint32_t LargestMagnitude(const float* x, size_t n, int threads);
uint32_t LargestMagnitude(const TensorView& x, int64_t begin, int64_t end);

}  // namespace thinwire
