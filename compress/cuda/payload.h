// Source and target of a codec's payload on a GPU: memory of the host or of the device, next to the
// entropy coder (entropy_codec.h) and where a link copies by itself.
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

// Up to 16 bytes that travel as a kernel's argument. SubmitFewBytes writes them to device memory.
struct FewBytes {
  uint8_t of[16] = {};
  uint32_t count = 0;
};
Error SubmitFewBytes(cudaStream_t stream, const FewBytes& bytes, uint8_t* to);

// Memory to which an encoder writes its payload.
class PayloadTarget {
 public:
  PayloadTarget(const PayloadBuffer& buffer)  // NOLINT: wherever a target is wanted
      : capacity(buffer.capacity),
        bytes(buffer.bytes),
        data_(buffer.data),
        is_on_device_(buffer.is_on_device) {}

  // Returns the memory behind the first n bytes. Whoever wrote those n bytes adds them to *bytes.
  PayloadTarget behind(size_t n) const {
    PayloadTarget target = *this;
    target.data_ += n;
    target.capacity -= n;
    return target;
  }

  // Returns the target's memory on the device: at least `capacity` bytes, at a multiple of 2. Null
  // if the target is on the host.
  uint8_t* on_device() const { return is_on_device_ ? data_ : nullptr; }

  // Copies n bytes of device memory to byte `at`, perhaps only at the stream's end.
  Error SubmitCopy(CudaDevice* device, size_t at, const void* from, size_t n) const {
    if (!is_on_device_) return device->SubmitCopyToHost(data_ + at, from, n);
    if (n == 0) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(device->Stream(&stream));
    CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(data_ + at, from, n, cudaMemcpyDeviceToDevice, stream));
    return Error{};
  }

  // Writes a number that the host knows, of at most 16 bytes, to byte `at`.
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
  size_t* bytes;  // set to the payload's length

 private:
  uint8_t* data_;
  bool is_on_device_;
};

// Memory from which a decoder reads its payload.
class PayloadSource {
 public:
  PayloadSource(const PayloadView& view = {})  // NOLINT: wherever a source is wanted
      : bytes(view.bytes), data_(view.data), is_on_device_(view.is_on_device) {}

  PayloadSource behind(size_t n) const {
    PayloadSource source = *this;
    source.data_ += n;
    source.bytes -= n;
    return source;
  }

  // Copies n bytes from byte `at` on to device memory. They stay until the stream is done.
  Error SubmitCopy(CudaDevice* device, size_t at, size_t n, void* to) const {
    if (!is_on_device_) return device->SubmitCopyFromHost(to, data_ + at, n);
    if (n == 0) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(device->Stream(&stream));
    CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, data_ + at, n, cudaMemcpyDeviceToDevice, stream));
    return Error{};
  }

  // Reads n bytes from byte `at` on to the host, for headers. Waits if they are on the device.
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
  // Returns the payload of a source on the host.
  PayloadView on_host() const { return {data_, bytes}; }
  // Returns the error for a malformed payload on the device. The host finds out what is wrong, from
  // the frame in which it came or from a copy.
  static Error Refused() {
    return MakeError(absl::StatusCode::kInvalidArgument, "a malformed payload in device memory");
  }

  size_t bytes;

 private:
  const uint8_t* data_;
  bool is_on_device_;
};

}  // namespace thinwire
