// cuBLASLt with our errors; its handle and descriptors have owners.
#pragma once

#include <cublasLt.h>

#include <memory>

#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"
#include "tensor/dtype.h"

namespace thinwire::cuda {

// Returns "cublasLtMatmul: CUBLAS_STATUS_...". The code is Unimplemented if cuBLASLt has no kernel,
// ResourceExhausted for memory, Unavailable if it cannot start, otherwise Internal.
Error CublasError(cublasStatus_t status, const char* call);

constexpr cudaDataType_t CudaType(DType type) {
  return type == DType::kF32 ? CUDA_R_32F : CUDA_R_16BF;
}

// Owns one of cuBLASLt's opaque objects. The create calls differ in arguments:
//   CublasOwned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> layout;
//   CUBLAS_RETURN_IF_ERROR(cublasLtMatrixLayoutCreate(layout.put(), CUDA_R_32F, rows, columns,
//   ld));
template <typename Object, cublasStatus_t (*destroy)(Object)>
class CublasOwned {
 public:
  CublasOwned() = default;
  ~CublasOwned() {
    if (object_ != nullptr) (void)destroy(object_);
  }
  CublasOwned(const CublasOwned&) = delete;
  CublasOwned& operator=(const CublasOwned&) = delete;

  Object get() const { return object_; }
  Object* put() { return &object_; }  // call it once only

 private:
  Object object_ = nullptr;
};

}  // namespace thinwire::cuda

// Does what RETURN_ERROR does, for cuBLASLt's calls.
#define CUBLAS_RETURN_IF_ERROR(call)                                                           \
  do {                                                                                         \
    if (const cublasStatus_t cublas_status = (call); cublas_status != CUBLAS_STATUS_SUCCESS) { \
      return ::thinwire::cuda::CublasError(cublas_status, #call);                              \
    }                                                                                          \
  } while (false)
