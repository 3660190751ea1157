// Frames of the entropy coder (compress/entropy/frame.h) of strings in device memory. Bytes and
// rANS states stay on the device; the host chooses neighbours and tables from counts and from a
// sample of some rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "compress/entropy/codes_place.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Writes the frame that EntropyFrame makes to `frame`, host memory of at least n bytes, and its
// length to *length: 0 if the frame would not be shorter. `bytes` are n bytes of device memory.
// Waits.
Error CudaEntropyFrame(CudaDevice* device, const uint8_t* bytes, size_t n, const CodesPlace& codes,
                       uint8_t* frame, size_t* length);

// Decodes a frame in host memory into *n bytes of device memory, which it reserves. InvalidArgument
// if ReadEntropyFrame refuses the frame, which names the reason; also if the frame has no codes.
Error CudaReadEntropyFrame(CudaDevice* device, absl::Span<const uint8_t> frame, size_t most,
                           CudaScratch* bytes, size_t* n);

}  // namespace thinwire
