// One GPU: memory from a stream-ordered pool, page-locked host memory, a stream per thread, and
// recordings as CUDA graphs.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "tensor/cuda/error.h"
#include "tensor/device.h"

namespace thinwire {

class CudaDevice : public Device {
 public:
  virtual int index() const = 0;
  virtual int multiprocessors() const = 0;

  // Makes this device the calling thread's and returns the stream on which all of the thread's work
  // goes. Kernels and library handles use only this stream, never the default stream.
  virtual Error Stream(cudaStream_t* stream) = 0;

  // Counts memory of this device that is not of Allocate and is never freed as in use.
  virtual void CountAsInUse(size_t bytes) = 0;

  // Copy on the thread's stream; asynchronous if what is not on the device is memory of host().
  // Until Finish nobody may change the source or read the destination.
  virtual Error SubmitCopy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) = 0;
  Error SubmitCopyFromHost(void* device, const void* host, size_t bytes) {
    return SubmitCopy(device, host, bytes, cudaMemcpyHostToDevice);
  }
  Error SubmitCopyToHost(void* host, const void* device, size_t bytes) {
    return SubmitCopy(host, device, bytes, cudaMemcpyDeviceToHost);
  }
  // Overwrites memory of this device with zeros, on the thread's stream.
  Error SubmitZeros(void* memory, size_t bytes) {
    cudaStream_t stream;
    RETURN_ERROR(Stream(&stream));
    CUDA_RETURN_IF_ERROR(cudaMemsetAsync(memory, 0, bytes, stream));
    return Error{};
  }
};

// Opens a device, which lives as long as the process and is not deleted: threads and freed memory
// refer to it.
Error NewCudaDevice(int index, CudaDevice** device);

// Device memory for the duration of a scope, on the calling thread's stream.
class CudaScratch {
 public:
  explicit CudaScratch(CudaDevice* device) : device_(device) {}
  ~CudaScratch() { Release(); }
  CudaScratch(const CudaScratch&) = delete;
  CudaScratch& operator=(const CudaScratch&) = delete;

  // Replaces the memory by a block of `bytes` bytes.
  Error Reserve(size_t bytes) {
    Release();
    return device_->Allocate(bytes, &memory_);
  }
  // Does the same and submits zeros for all of it.
  Error ReserveZeros(size_t bytes) {
    RETURN_ERROR(Reserve(bytes));
    return device_->SubmitZeros(memory_, bytes);
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  void Release() {
    if (memory_ != nullptr) device_->Free(memory_);
    memory_ = nullptr;
  }

  CudaDevice* const device_;
  void* memory_ = nullptr;
};

}  // namespace thinwire
