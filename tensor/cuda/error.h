// CUDA's errors as ours.
#pragma once

#include <cuda_runtime.h>

#include "tensor/error.h"

namespace thinwire {

// "cudaMemcpyAsync: an illegal memory access was encountered". ResourceExhausted for memory,
// Unavailable for a missing driver or device, Internal otherwise.
Error CudaError(cudaError_t code, const char* call);

}  // namespace thinwire

// RETURN_ERROR (tensor/error.h) of a CUDA call.
#define CUDA_RETURN_IF_ERROR(call)                                        \
  do {                                                                    \
    if (const cudaError_t cuda_code = (call); cuda_code != cudaSuccess) { \
      return ::thinwire::CudaError(cuda_code, #call);                     \
    }                                                                     \
  } while (false)
