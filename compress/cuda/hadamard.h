// A random rotation: signs, and the Walsh-Hadamard transform of each block of a tensor, what is
// left over in stretches of descending powers of two (compress/cpu/hadamard.h). The same bits.
// Launches only.
#pragma once

#include <cstdint>

#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Which magnitudes are too large to be transformed, and where that is reported.
struct RotationLimit {
  float most;
  int64_t piece;                // elements
  unsigned long long* refused;  // in device memory; begins as zero and stays so if nothing is
};
// The largest magnitude in the first piece that has one above the limit. Requires refused != 0.
float RefusedMagnitude(unsigned long long refused);

// to[i], fp32, of x: signs, then the transform. x is not empty; `block` is a power of two up to
// 2^15.
Error SubmitRotate(CudaDevice* device, const TensorView& x, uint32_t block, uint64_t key,
                   const RotationLimit& limit, float* to);
// The inverse. `from` is overwritten; it may be x's own memory.
Error SubmitRotateBack(CudaDevice* device, float* from, uint32_t block, uint64_t key,
                       const RotationLimit& limit, const TensorView& x);

}  // namespace thinwire
