// Converts CUDA's errors to ours.
#pragma once

#include <cuda_runtime.h>

#include "tensor/error.h"

namespace thinwire {

// Returns "cudaMemcpyAsync: an illegal memory access was encountered", for example. The code is
// ResourceExhausted for memory, Unavailable for a missing driver or device, otherwise Internal.
Error CudaError(cudaError_t code, const char* call);

}  // namespace thinwire

// Does for a CUDA call what RETURN_ERROR (tensor/error.h) does.
#define CUDA_RETURN_IF_ERROR(call)                                        \
  do {                                                                    \
    if (const cudaError_t cuda_code = (call); cuda_code != cudaSuccess) { \
      return ::thinwire::CudaError(cuda_code, #call);                     \
    }                                                                     \
  } while (false)
