#include "nn/cuda/cublaslt.h"

#include <cstring>

namespace thinwire::cuda {
namespace {

absl::StatusCode StatusCodeOf(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return absl::StatusCode::kUnimplemented;
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::StatusCode::kResourceExhausted;
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_LICENSE_ERROR:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

Error CublasError(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return Error{};
  const int name = static_cast<int>(std::strcspn(call, "("));  // up to the arguments
  return MakeError(StatusCodeOf(status), "%.*s: %s", name, call, cublasLtGetStatusName(status));
}

}  // namespace thinwire::cuda
