// One look over an array: its range, and whether every value is finite.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// The extremes of some values; min > max if there are none. When `magnitude` is not finite, the
// other two mean nothing.
struct ValueRange {
  float min = 3.402823466e38f;
  float max = -3.402823466e38f;
  uint32_t magnitude = 0;  // bits of the largest |x|; at least kInfinityBits if any is not finite
};

// Adds the values of x[0, n) to *range.
void AddToRange(const float* x, size_t n, ValueRange* range);

// Element by element: min[i] = min(min[i], x[i]), max likewise; returns the largest magnitude bits.
uint32_t AddToRanges(const float* x, size_t n, float* min, float* max);

// Bits of the largest |x|, and of the largest |x| that is finite; 0 if there is none.
uint32_t LargestMagnitude(const float* x, size_t n);
uint32_t LargestFiniteMagnitude(const float* x, size_t n);

// LargestMagnitude by so many threads.
uint32_t LargestMagnitude(const float* x, size_t n, int threads);

}  // namespace thinwire
