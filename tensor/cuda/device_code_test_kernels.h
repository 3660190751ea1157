// Calls the shared device code once in each thread of one block. Pointers are to device memory.
#pragma once

#include <cstdint>

#include "tensor/cuda/device.h"

namespace thinwire {

// Sets to[i] to from[i] narrowed, and wide[i] to to[i] widened.
Error ConvertAll(CudaDevice* device, const float* from, int64_t n, uint16_t* to, float* wide);

// Copies n elements by vectors of `width` 4 or 8; element types are float or uint16_t.
Error CopyByVectors(CudaDevice* device, int width, const float* from, int64_t n, float* to);
Error CopyByVectors(CudaDevice* device, int width, const uint16_t* from, int64_t n, uint16_t* to);

// Results of thread i of `threads`, whose value is values[i], for several types one after the
// other.
struct Reduced {
  float sum;
  double double_sum;
  float least, greatest;
  int64_t long_least;
  uint32_t int_greatest;
};
Error ReduceAll(CudaDevice* device, int threads, const float* values, Reduced* reduced);

struct Scanned {
  uint32_t before, total;
  int64_t long_before, long_total;
};
Error ScanAll(CudaDevice* device, int threads, const uint32_t* values, Scanned* scanned);

// Multiplies with one warp: product = a b and transposed = a b^T, all [16, 16]; a and b are bf16.
Error MultiplyMatrices(CudaDevice* device, const uint16_t* a, const uint16_t* b, float* product,
                       float* transposed);
// Sets words[i] to the i-th two of n values as bf16.
Error NarrowTwos(CudaDevice* device, const float* values, int64_t n, uint32_t* words);

}  // namespace thinwire
