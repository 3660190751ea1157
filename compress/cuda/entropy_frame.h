// The entropy coder's frames (compress/entropy/frame.h) of strings in device memory: bytes and
// states stay there, the host chooses neighbours and tables by counts, and by a sample of some
// rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "compress/entropy/codes_place.h"
#include "tensor/cuda/device.h"
#include "tensor/error.h"

namespace thinwire {

// Writes the bytes of EntropyFrame to `frame`, host memory of at least n bytes, and how many they
// are to *length: 0 if the frame would not be shorter. `bytes`: n in device memory. Waits.
Error CudaEntropyFrame(CudaDevice* device, const uint8_t* bytes, size_t n, const CodesPlace& codes,
                       uint8_t* frame, size_t* length);

// The inverse, of a frame in host memory: *n bytes in device memory that it reserves.
// InvalidArgument where ReadEntropyFrame has that, whose words name the reason; also where a frame
// has no codes.
Error CudaReadEntropyFrame(CudaDevice* device, absl::Span<const uint8_t> frame, size_t most,
                           CudaScratch* bytes, size_t* n);

}  // namespace thinwire
