#include "nn/cuda/cudnn.h"

#include <cstring>
#include <string>

namespace thinwire::cuda {
namespace {

absl::StatusCode StatusCodeOf(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return absl::StatusCode::kResourceExhausted;
    case CUDNN_STATUS_NOT_INITIALIZED:
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART:
    case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
      return absl::StatusCode::kUnavailable;
    default:
      return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED
                 ? absl::StatusCode::kUnimplemented
                 : absl::StatusCode::kInternal;
  }
}

Error AttributeError(cudnnStatus_t status, const char* verb, cudnnBackendAttributeName_t name) {
  const std::string call =
      std::string("cudnnBackend") + verb + "Attribute " + std::to_string(static_cast<int>(name));
  return CudnnError(status, call.c_str());
}

}  // namespace

Error CudnnError(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return Error{};
  char said[256] = {};
  cudnnGetLastErrorString(said, sizeof(said));
  const int name = static_cast<int>(std::strcspn(call, "("));  // up to the arguments
  return MakeError(StatusCodeOf(status), "%.*s: %s%s%s", name, call, cudnnGetErrorString(status),
                   said[0] == '\0' ? "" : ": ", said);
}

CudnnHandle::~CudnnHandle() {
  if (handle_ == nullptr) return;
  cudaStream_t stream;
  (void)device_->Stream(&stream);  // makes the handle's device this thread's again
  (void)cudnnDestroy(handle_);
}

Error CudnnHandle::Get(cudnnHandle_t* handle) {
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  if (handle_ == nullptr) CUDNN_RETURN_IF_ERROR(cudnnCreate(&handle_));
  if (stream != stream_) {
    CUDNN_RETURN_IF_ERROR(cudnnSetStream(handle_, stream));
    stream_ = stream;
  }
  *handle = handle_;
  return Error{};
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type)
    : failure_(CudnnError(cudnnBackendCreateDescriptor(type, &descriptor_),
                          "cudnnBackendCreateDescriptor")) {}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) (void)cudnnBackendDestroyDescriptor(descriptor_);
}

void CudnnDescriptor::SetArray(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                               int64_t count, const void* values) {
  if (!failure_.ok()) return;
  const cudnnStatus_t status = cudnnBackendSetAttribute(descriptor_, name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS) failure_ = AttributeError(status, "Set", name);
}

void CudnnDescriptor::Set(cudnnBackendAttributeName_t name,
                          std::initializer_list<const CudnnDescriptor*> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor* value : values) raw.push_back(value->descriptor_);
  SetArray(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
}

Error CudnnDescriptor::GetArray(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                int64_t most, int64_t* count, void* values) const {
  if (!failure_.ok()) return failure_;
  const cudnnStatus_t status =
      cudnnBackendGetAttribute(descriptor_, name, type, most, count, values);
  return status == CUDNN_STATUS_SUCCESS ? Error{} : AttributeError(status, "Get", name);
}

Error CudnnDescriptor::Finalize() {
  if (failure_.ok()) {
    failure_ = CudnnError(cudnnBackendFinalize(descriptor_), "cudnnBackendFinalize");
  }
  return failure_;
}

Error CudnnDescriptor::Get(cudnnBackendAttributeName_t name,
                           std::vector<CudnnDescriptor>* values) const {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor& value : *values) {
    RETURN_ERROR(value.failure_);
    raw.push_back(value.descriptor_);
  }
  int64_t count = 0;
  RETURN_ERROR(GetArray(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()),
                        &count, raw.data()));
  while (static_cast<int64_t>(values->size()) > count) values->pop_back();
  return Error{};
}

}  // namespace thinwire::cuda
