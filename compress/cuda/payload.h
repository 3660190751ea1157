// Source and target of a codec's payload on a GPU: memory of the host or of the device, next to the
// entropy coder (entropy_frame.h) and where a link copies by itself.
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
struct PayloadTarget : PayloadBuffer {
  PayloadTarget(const PayloadBuffer& buffer) : PayloadBuffer(buffer) {}  // NOLINT: as it is wanted

  // Returns the target's memory on the device: at least `capacity` bytes, at a multiple of 2. Null
  // if the target is on the host.
  uint8_t* on_device() const { return is_on_device ? data : nullptr; }

  // Copies n bytes of device memory to byte `at`, perhaps only at the stream's end.
  Error SubmitCopy(CudaDevice* device, size_t at, const void* from, size_t n) const {
    if (!is_on_device) return device->SubmitCopyToHost(data + at, from, n);
    if (n == 0) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(device->Stream(&stream));
    CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(data + at, from, n, cudaMemcpyDeviceToDevice, stream));
    return Error{};
  }

  // Writes a number that the host knows, of at most 16 bytes, to byte `at`.
  template <typename T>
  Error Put(CudaDevice* device, size_t at, const T& number) const {
    FewBytes few;
    static_assert(sizeof(T) <= sizeof(few.of));
    if (!is_on_device) {
      std::memcpy(data + at, &number, sizeof(number));
      return Error{};
    }
    std::memcpy(few.of, &number, sizeof(number));
    few.count = sizeof(number);
    cudaStream_t stream;
    RETURN_ERROR(device->Stream(&stream));
    return SubmitFewBytes(stream, few, data + at);
  }
};

// Memory from which a decoder reads its payload.
struct PayloadSource : PayloadView {
  PayloadSource(const PayloadView& view = {}) : PayloadView(view) {}  // NOLINT: as it is wanted

  // Copies n bytes from byte `at` on to device memory. They stay until the stream is done.
  Error SubmitCopy(CudaDevice* device, size_t at, size_t n, void* to) const {
    if (!is_on_device) return device->SubmitCopyFromHost(to, data + at, n);
    if (n == 0) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(device->Stream(&stream));
    CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, data + at, n, cudaMemcpyDeviceToDevice, stream));
    return Error{};
  }

  // Reads n bytes from byte `at` on to the host, for headers. Waits if they are on the device.
  Error Read(CudaDevice* device, size_t at, size_t n, void* to) const {
    if (is_on_device) return device->CopyToHost(to, data + at, n);
    if (n > 0) std::memcpy(to, data + at, n);
    return Error{};
  }
  template <typename T>
  Error Read(CudaDevice* device, size_t at, T* number) const {
    return Read(device, at, sizeof(*number), number);
  }

  // Returns the error for a malformed payload on the device. The host finds out what is wrong, from
  // the frame in which it came or from a copy.
  static Error Refused() {
    return MakeError(absl::StatusCode::kInvalidArgument, "a malformed payload in device memory");
  }
};

}  // namespace thinwire
