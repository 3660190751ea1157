// Device functions that gather and read Extremes (extremes.h).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "base/host_device.h"
#include "compress/cpu/range_line.h"
#include "compress/cuda/extremes.h"
#include "compress/half.h"
#include "tensor/cuda/bf16.cuh"

namespace thinwire {

// Return the key of a float's bits, and back. Keys, as unsigned integers, are ordered like the
// values. A key flips all bits of a negative float, whose magnitude counts downwards, and only the
// sign bit of others.
HOST_DEVICE inline uint32_t KeyOfBits(uint32_t bits) {
  return bits ^ ((bits >> 31) != 0 ? 0xFFFFFFFFu : 0x80000000u);
}
HOST_DEVICE inline uint32_t BitsOfKey(uint32_t key) {
  return key ^ ((key >> 31) != 0 ? 0x80000000u : 0xFFFFFFFFu);
}

// Adds one value to *e. With Counted::kFinite, NaN and infinity count as 0.
__device__ inline void AddValue(float x, Counted counted, Extremes* e) {
  uint32_t bits = __float_as_uint(x);
  if (counted == Counted::kFinite && (bits & kMagnitudeMask) >= kInfinityBits) bits = 0;
  const uint32_t key = KeyOfBits(bits);
  e->greatest = key > e->greatest ? key : e->greatest;
  // The complement turns the least key into the greatest number, so that both start from zero.
  e->least = ~key > e->least ? ~key : e->least;
}

constexpr int kExtremesBatch = 4;  // vectors that a thread loads at a time

// Returns the extremes of this thread's share, among `threads` (4 at least), of x[begin, end).
template <typename T>
__device__ Extremes ExtremesOfShare(const T* x, int64_t begin, int64_t end, unsigned thread,
                                    unsigned threads, Counted counted) {
  Extremes e = {};
  // Vectors begin at multiples of four, wherever the scope does; up to three elements are left at
  // either end.
  const int64_t first = min((begin + 3) / 4 * 4, end), last = max(end / 4 * 4, first);
  if (thread < first - begin) AddValue(Load(x + begin + thread), counted, &e);
  if (thread < end - last) AddValue(Load(x + last + thread), counted, &e);
  const int64_t stride = 4 * static_cast<int64_t>(threads);
  int64_t i = first + 4 * static_cast<int64_t>(thread);
  for (; i + (kExtremesBatch - 1) * stride < last; i += kExtremesBatch * stride) {
    float v[kExtremesBatch][4];
    LoadVectors(x + i, stride, v);
    for (int j = 0; j < kExtremesBatch; ++j) {
      for (int k = 0; k < 4; ++k) AddValue(v[j][k], counted, &e);
    }
  }
  for (; i < last; i += stride) {
    float v[4];
    LoadVector(x + i, 4, v);
    for (int k = 0; k < 4; ++k) AddValue(v[k], counted, &e);
  }
  return e;
}

// Adds to extremes that other threads add to as well.
__device__ inline void AddShared(const Extremes& value, Extremes* shared) {
  atomicMax(&shared->greatest, value.greatest);
  atomicMax(&shared->least, value.least);
}

// Returns the extremes of at least one value as floats.
HOST_DEVICE inline MinMax MinMaxOf(const Extremes& e) {
  return {FloatOf(BitsOfKey(~e.least)), FloatOf(BitsOfKey(e.greatest))};
}

// Returns the bits of the largest |x|; kInfinityBits or more if any value is not finite.
HOST_DEVICE inline uint32_t LargestMagnitude(const Extremes& e) {
  const uint32_t least = BitsOfKey(~e.least) & kMagnitudeMask;
  const uint32_t greatest = BitsOfKey(e.greatest) & kMagnitudeMask;
  return least > greatest ? least : greatest;
}

}  // namespace thinwire
