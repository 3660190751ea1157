#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

absl::StatusCode StatusCodeOf(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return absl::StatusCode::kResourceExhausted;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

Error CudaError(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return Error{};
  // Clears the error: some libraries ask for the thread's last error and would take this one for
  // theirs.
  (void)cudaGetLastError();
  return MakeError(StatusCodeOf(code), "%s: %s", call, cudaGetErrorString(code));
}

}  // namespace thinwire
