// cuDNN with our errors: its handle, and the descriptors of its graph API (cudnn_graph.h), which
// are destroyed after their user.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"
#include "tensor/dtype.h"

namespace thinwire::cuda {

// Returns "cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED: ..." with what cuDNN last said in this
// thread. The code is Unimplemented if cuDNN has no kernel, ResourceExhausted for memory,
// Unavailable if the library or driver does not fit, otherwise Internal.
Error CudnnError(cudnnStatus_t status, const char* call);

constexpr cudnnDataType_t CudnnType(DType type) {
  return type == DType::kF32 ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
}

// cuDNN's handle. One thread uses it at a time; it outlives what is made with it.
class CudnnHandle {
 public:
  explicit CudnnHandle(CudaDevice* device) : device_(device) {}
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  CudaDevice* device() const { return device_; }

  // Returns the handle, created on first use. It works on the calling thread's stream from now on.
  Error Get(cudnnHandle_t* handle);

 private:
  CudaDevice* const device_;
  cudnnHandle_t handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

// The attribute type that goes with a C++ type.
template <typename T>
struct CudnnAttribute;
#define THINWIRE_CUDNN_ATTRIBUTE(T, name)                        \
  template <>                                                    \
  struct CudnnAttribute<T> {                                     \
    static constexpr cudnnBackendAttributeType_t kType = (name); \
  }
THINWIRE_CUDNN_ATTRIBUTE(cudnnHandle_t, CUDNN_TYPE_HANDLE);
THINWIRE_CUDNN_ATTRIBUTE(cudnnDataType_t, CUDNN_TYPE_DATA_TYPE);
THINWIRE_CUDNN_ATTRIBUTE(bool, CUDNN_TYPE_BOOLEAN);
THINWIRE_CUDNN_ATTRIBUTE(int64_t, CUDNN_TYPE_INT64);
THINWIRE_CUDNN_ATTRIBUTE(float, CUDNN_TYPE_FLOAT);
THINWIRE_CUDNN_ATTRIBUTE(cudnnConvolutionMode_t, CUDNN_TYPE_CONVOLUTION_MODE);
THINWIRE_CUDNN_ATTRIBUTE(cudnnPointwiseMode_t, CUDNN_TYPE_POINTWISE_MODE);
THINWIRE_CUDNN_ATTRIBUTE(cudnnBackendHeurMode_t, CUDNN_TYPE_HEUR_MODE);
THINWIRE_CUDNN_ATTRIBUTE(cudnnBackendNumericalNote_t, CUDNN_TYPE_NUMERICAL_NOTE);
#undef THINWIRE_CUDNN_ATTRIBUTE

// A backend descriptor. It keeps the first failure of creation or of a Set; later Sets then do
// nothing, and Finalize returns the failure:
//   CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
//   tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
//   RETURN_ERROR(tensor.Finalize());
class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;  // none
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)), failure_(other.failure_) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(failure_, other.failure_);
    return *this;
  }

  template <typename T>
  void Set(cudnnBackendAttributeName_t name, const T& value) {
    SetArray(name, CudnnAttribute<T>::kType, 1, &value);
  }
  template <typename T>
  void Set(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    SetArray(name, CudnnAttribute<T>::kType, static_cast<int64_t>(values.size()), values.data());
  }
  // Sets a descriptor. `value` must be finalized and live until what contains it is finalized, too.
  void Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    SetArray(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  // Sets several descriptors; the same holds for each of `values`.
  void Set(cudnnBackendAttributeName_t name, std::initializer_list<const CudnnDescriptor*> values);
  // Sets addresses; null is allowed.
  void SetPointers(cudnnBackendAttributeName_t name, const std::vector<void*>& values) {
    SetArray(name, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(values.size()), values.data());
  }

  Error Finalize();

  // Get attributes of a finalized descriptor. This one gets at most `values->size()` values and
  // shrinks *values to what there is.
  template <typename T>
  Error Get(cudnnBackendAttributeName_t name, std::vector<T>* values) const {
    int64_t count = 0;
    RETURN_ERROR(GetArray(name, CudnnAttribute<T>::kType, static_cast<int64_t>(values->size()),
                          &count, values->data()));
    if (count < static_cast<int64_t>(values->size())) values->resize(static_cast<size_t>(count));
    return Error{};
  }
  // Count returns how many descriptors the attribute has. Get fills in the first values->size() of
  // them; these must have been created (but not finalized) for it.
  Error Count(cudnnBackendAttributeName_t name, int64_t* count) const {
    return GetArray(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, count, nullptr);
  }
  Error Get(cudnnBackendAttributeName_t name, std::vector<CudnnDescriptor>* values) const;

  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  void SetArray(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void* values);
  Error GetArray(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                 int64_t* count, void* values) const;

  cudnnBackendDescriptor_t descriptor_ = nullptr;
  Error failure_;
};

}  // namespace thinwire::cuda

// Does what RETURN_ERROR does, for cuDNN's calls.
#define CUDNN_RETURN_IF_ERROR(call)                                                        \
  do {                                                                                     \
    if (const cudnnStatus_t cudnn_status = (call); cudnn_status != CUDNN_STATUS_SUCCESS) { \
      return ::thinwire::cuda::CudnnError(cudnn_status, #call);                            \
    }                                                                                      \
  } while (false)
