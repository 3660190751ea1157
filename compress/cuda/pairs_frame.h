// The entropy coder's frames of pairs (compress/pairs_layout.h), of strings in device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/codes_place.h"
#include "compress/pairs_layout.h"
#include "tensor/cuda/device.h"
#include "tensor/error.h"

namespace thinwire {

// Writes such a frame to `frame`, host memory of at least n bytes, and its length to *length: 0 if
// it does not pay. `bytes`: n in device memory, whose codes, of which there are some, were found to
// be mostly small (SubmitLargeLooks). Waits.
Error CudaPairsFrame(CudaDevice* device, const uint8_t* bytes, size_t n, const CodesPlace& codes,
                     uint8_t* frame, size_t* length);

// What a frame in host memory holds, to device memory. InvalidArgument if it is refused, also if it
// has no codes. Waits.
Error CudaReadPairsFrame(CudaDevice* device, const PairsFrameView& view, uint8_t* bytes);

}  // namespace thinwire
