// CUDA's errors as ours.
#pragma once

#include <cuda_runtime.h>

#include "tensor/error.h"

namespace thinwire {

// "cudaMemcpyAsync: an illegal memory access was encountered". ResourceExhausted for memory,
// Unavailable for a missing driver or device, Internal otherwise.
Error CudaError(cudaError_t code, const char* call);

}  // namespace thinwire

// In functions that return Error: returns what went wrong with a CUDA call, or with one of ours.
#define CUDA_RETURN_IF_ERROR(call)                                        \
  do {                                                                    \
    if (const cudaError_t cuda_code = (call); cuda_code != cudaSuccess) { \
      return ::thinwire::CudaError(cuda_code, #call);                     \
    }                                                                     \
  } while (false)
#define RETURN_ERROR(call)                                                                   \
  do {                                                                                       \
    if (const ::thinwire::Error found_error = (call); !found_error.ok()) return found_error; \
  } while (false)
