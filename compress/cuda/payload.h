// Where a codec's payload goes and where it comes from on a GPU: memory of the host, or of the
// device, where the entropy coder is (entropy_codec.h).
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compress/kernels.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire {

// Up to 16 bytes that travel with a launch.
struct FewBytes {
  uint8_t of[16] = {};
  uint32_t count = 0;
};
Error SubmitFewBytes(cudaStream_t stream, const FewBytes& bytes, uint8_t* to);

class PayloadTarget {
 public:
  PayloadTarget(const PayloadBuffer& host)  // NOLINT: wherever a target is wanted
      : capacity(host.capacity), bytes(host.bytes), data_(host.data) {}
  static PayloadTarget OnDevice(uint8_t* memory, size_t capacity, size_t* bytes) {
    PayloadTarget target({memory, capacity, bytes});
    target.is_on_device_ = true;
    return target;
  }

  // What lies behind the first n bytes, whose writer adds them to *bytes.
  PayloadTarget behind(size_t n) const {
    PayloadTarget target = *this;
    target.data_ += n;
    target.capacity -= n;
    return target;
  }

  // Null if it is on the host. At least `capacity` bytes, from a multiple of 2 on.
  uint8_t* on_device() const { return is_on_device_ ? data_ : nullptr; }

  // n bytes of device memory become those from byte `at` on; perhaps only at the stream's end.
  Error SubmitCopy(CudaDevice* device, size_t at, const void* from, size_t n) const {
    if (!is_on_device_) return device->SubmitCopyToHost(data_ + at, from, n);
    if (n == 0) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(device->Stream(&stream));
    CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(data_ + at, from, n, cudaMemcpyDeviceToDevice, stream));
    return Error{};
  }

  // The same of a number that the host knows, of at most 16 bytes.
  template <typename T>
  Error Put(CudaDevice* device, size_t at, const T& number) const {
    FewBytes few;
    static_assert(sizeof(T) <= sizeof(few.of));
    if (!is_on_device_) {
      std::memcpy(data_ + at, &number, sizeof(number));
      return Error{};
    }
    std::memcpy(few.of, &number, sizeof(number));
    few.count = sizeof(number);
    cudaStream_t stream;
    RETURN_ERROR(device->Stream(&stream));
    return SubmitFewBytes(stream, few, data_ + at);
  }

  size_t capacity;
  size_t* bytes;  // gets the payload's length

 private:
  uint8_t* data_;
  bool is_on_device_ = false;
};

class PayloadSource {
 public:
  PayloadSource(const PayloadView& host = {})  // NOLINT: wherever a source is wanted
      : bytes(host.bytes), data_(host.data) {}
  static PayloadSource OnDevice(const uint8_t* memory, size_t bytes) {
    PayloadSource source({memory, bytes});
    source.is_on_device_ = true;
    return source;
  }

  PayloadSource behind(size_t n) const {
    PayloadSource source = *this;
    source.data_ += n;
    source.bytes -= n;
    return source;
  }

  // n bytes from byte `at` on, which stay until the stream is done, to device memory.
  Error SubmitCopy(CudaDevice* device, size_t at, size_t n, void* to) const {
    if (!is_on_device_) return device->SubmitCopyFromHost(to, data_ + at, n);
    if (n == 0) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(device->Stream(&stream));
    CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, data_ + at, n, cudaMemcpyDeviceToDevice, stream));
    return Error{};
  }

  // n bytes from byte `at` on, for the host: headers. Waits if they are on the device.
  Error Read(CudaDevice* device, size_t at, size_t n, void* to) const {
    if (is_on_device_) return device->CopyToHost(to, data_ + at, n);
    if (n > 0) std::memcpy(to, data_ + at, n);
    return Error{};
  }
  template <typename T>
  Error Read(CudaDevice* device, size_t at, T* number) const {
    return Read(device, at, sizeof(*number), number);
  }

  bool is_on_device() const { return is_on_device_; }
  // Of a source on the host.
  PayloadView on_host() const { return {data_, bytes}; }
  // What is wrong with a payload on the device is found on the host, from the frame it came in.
  static Error Refused() {
    return MakeError(absl::StatusCode::kInvalidArgument, "a malformed payload in device memory");
  }

  size_t bytes;

 private:
  const uint8_t* data_;
  bool is_on_device_ = false;
};

}  // namespace thinwire
