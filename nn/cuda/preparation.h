// The preparation of a library's call, which happens when it is made for the first time.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire::cuda {

// Returns FailedPrecondition if the calling thread records. `what` is called for a batch of n.
inline Error CheckMayPrepare(CudaDevice* device, const char* what, int64_t n) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  CUDA_RETURN_IF_ERROR(cudaStreamIsCapturing(stream, &capture));
  if (capture == cudaStreamCaptureStatusNone) return Error{};
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   "%s: the first batch of %lld cannot be recorded", what,
                   static_cast<long long>(n));
}

inline bool IsUnimplemented(const Error& error) {
  return error.code == static_cast<int32_t>(absl::StatusCode::kUnimplemented);
}
inline bool IsExhausted(const Error& error) {
  return error.code == static_cast<int32_t>(absl::StatusCode::kResourceExhausted);
}
inline bool IsUnavailable(const Error& error) {
  return error.code == static_cast<int32_t>(absl::StatusCode::kUnavailable);
}

}  // namespace thinwire::cuda
