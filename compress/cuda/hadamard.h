// Random rotation of a tensor: signs, and the Walsh-Hadamard transform of each block. What is left
// over is transformed in stretches of descending powers of two (compress/cpu/loops.h). Gives the
// CPU's bits. Only launches kernels.
#pragma once

#include <cstdint>

#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Limit above which magnitudes are too large to be transformed, and where such are reported.
struct RotationLimit {
  float most;
  uint32_t* refused;  // in device memory: bits of the largest above it; zero before and if none is
};

// Writes the rotated x, fp32, to `to`: signs, then the transform. x is not empty; `block` is a
// power of two up to 2^15.
Error SubmitRotate(CudaDevice* device, const TensorView& x, uint32_t block, uint64_t key,
                   const RotationLimit& limit, float* to);
// Inverts SubmitRotate. `from` is overwritten; it may be x's own memory.
Error SubmitRotateBack(CudaDevice* device, float* from, uint32_t block, uint64_t key,
                       const RotationLimit& limit, const TensorView& x);

}  // namespace thinwire
