// Copy of a part of a payload as whole words in device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "compress/cuda/bitmap.h"
#include "compress/cuda/payload.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire {

// Reserves *to and submits the copy. Zeros fill the last 64-bit word, and at least one such word of
// zeros follows it. The payload must not change until the stream is done.
inline Error SubmitPayloadCopy(CudaDevice* device, cudaStream_t stream,
                               const PayloadSource& payload, size_t at, size_t n, CudaScratch* to) {
  const size_t with_zeros = BitmapBytes(8 * static_cast<int64_t>(n)) + 8;
  RETURN_ERROR(to->Reserve(with_zeros));
  uint8_t* const copy = to->as<uint8_t>();
  const size_t whole = n / 8 * 8;
  CUDA_RETURN_IF_ERROR(cudaMemsetAsync(copy + whole, 0, with_zeros - whole, stream));
  return payload.SubmitCopy(device, at, n, copy);
}

}  // namespace thinwire
