// Bitmap of the elements that are large enough, and the largest magnitude of all, in one pass each.
#pragma once

#include <cstdint>

#include "compress/cuda/keys.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Least magnitude bits that are marked: `bits`, or the number at `in_memory` on the device.
struct LeastMarked {
  uint32_t bits = 1;
  const uint32_t* in_memory = nullptr;
};

// Overwrites `marks`, a bitmap over keys.total elements: a bit is set if the magnitude is at least
// `least`, which is not 0. Adds the number of set bits to *count, and sets *nonfinite to 1 if there
// is a NaN or infinity; both pointers may be null. keys.elements is ignored.
Error SubmitMark(CudaDevice* device, const Keys& keys, const LeastMarked& least, uint32_t* marks,
                 uint64_t* count, uint32_t* nonfinite);

// Raises *largest, in device memory, to at least the bits of each magnitude.
Error SubmitLargestMagnitude(CudaDevice* device, const Keys& keys, uint32_t* largest);

}  // namespace thinwire
