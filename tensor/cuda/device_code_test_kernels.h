// The shared device code, called once by each thread of one block; pointers are to device memory.
#pragma once

#include <cstdint>

#include "tensor/cuda/device.h"

namespace thinwire {

// to[i] = narrowed from[i], and wide[i] = widened to[i].
Error ConvertAll(CudaDevice* device, const float* from, int64_t n, uint16_t* to, float* wide);

// Copies n elements by vectors of `width` 4 or 8, element types float or uint16_t.
Error CopyByVectors(CudaDevice* device, int width, const float* from, int64_t n, float* to);
Error CopyByVectors(CudaDevice* device, int width, const uint16_t* from, int64_t n, uint16_t* to);

// What thread i of `threads` gets for its value values[i], for several types one after the other.
struct Reduced {
  float sum;
  double double_sum;
  float least, greatest;
  int64_t long_least;
  uint32_t bits;
};
Error ReduceAll(CudaDevice* device, int threads, const float* values, Reduced* reduced);

struct Scanned {
  uint32_t before, total;
  int64_t long_before, long_total;
};
Error ScanAll(CudaDevice* device, int threads, const uint32_t* values, Scanned* scanned);

// a, b: bf16 [16, 16]. product = a b and transposed = a b^T, [16, 16], by one warp.
Error MultiplyMatrices(CudaDevice* device, const uint16_t* a, const uint16_t* b, float* product,
                       float* transposed);
// words[i] = the i-th two of n values as bf16.
Error NarrowTwos(CudaDevice* device, const float* values, int64_t n, uint32_t* words);

}  // namespace thinwire
