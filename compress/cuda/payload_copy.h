// A part of a payload, from any host memory, as whole words in device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "compress/cuda/bitmap.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire {

// Reserves *to and submits the copy. At least one 64-bit word of zeros follows the last byte, and
// zeros fill the word that this lies in. `bytes` stays as it is until the stream is done.
inline Error SubmitPayloadCopy(CudaDevice* device, cudaStream_t stream, const uint8_t* bytes,
                               size_t n, CudaScratch* to) {
  const size_t with_zeros = BitmapBytes(8 * static_cast<int64_t>(n)) + 8;
  RETURN_ERROR(to->Reserve(with_zeros));
  uint8_t* const copy = to->as<uint8_t>();
  const size_t whole = n / 8 * 8;
  CUDA_RETURN_IF_ERROR(cudaMemsetAsync(copy + whole, 0, with_zeros - whole, stream));
  return n == 0 ? Error{} : device->SubmitCopyFromHost(copy, bytes, n);
}

}  // namespace thinwire
