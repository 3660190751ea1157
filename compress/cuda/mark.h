// Bitmaps of what is large enough, and the largest of all, in one pass each.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/keys.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Magnitude bits from which on elements are marked: `bits`, or what `in_memory` of the device has.
struct LeastMarked {
  uint32_t bits = 1;
  const uint32_t* in_memory = nullptr;
};

// Overwrites `marks`, a bitmap over keys.total elements: set where a magnitude is at least `least`,
// which is not 0. Adds their number to *count, and sets *nonfinite to 1 if there is a NaN or
// infinity, unless these are null. keys.elements is not looked at.
Error SubmitMark(cudaStream_t stream, const Keys& keys, const LeastMarked& least, uint32_t* marks,
                 uint64_t* count, uint32_t* nonfinite);

// *largest, in device memory, becomes at least the bits of each magnitude.
Error SubmitLargestMagnitude(CudaDevice* device, cudaStream_t stream, const Keys& keys,
                             uint32_t* largest);

}  // namespace thinwire
