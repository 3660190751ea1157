// Source and target of a codec's payload on a GPU: memory of the host or of the device, next to the
// entropy coder (entropy_frame.h) and where a link copies by itself.
#pragma once

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
Error SubmitFewBytes(CudaDevice* device, const FewBytes& bytes, uint8_t* to);

// Memory to which an encoder writes its payload.
struct PayloadTarget : PayloadBuffer {
  PayloadTarget(const PayloadBuffer& buffer) : PayloadBuffer(buffer) {}  // NOLINT: as it is wanted

  // Returns the target's memory on the device: at least `capacity` bytes, at a multiple of 2. Null
  // if the target is on the host.
  uint8_t* on_device() const { return is_on_device ? data : nullptr; }

  // Copies n bytes of device memory to byte `at`, perhaps only at the stream's end.
  Error SubmitCopy(CudaDevice* device, size_t at, const void* from, size_t n) const {
    const auto kind = is_on_device ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
    return device->SubmitCopy(data + at, from, n, kind);
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
    return SubmitFewBytes(device, few, data + at);
  }
};

// Memory from which a decoder reads its payload.
struct PayloadSource : PayloadView {
  PayloadSource(const PayloadView& view = {}) : PayloadView(view) {}  // NOLINT: as it is wanted

  // Copies n bytes from byte `at` on to device memory. They stay until the stream is done.
  Error SubmitCopy(CudaDevice* device, size_t at, size_t n, void* to) const {
    const auto kind = is_on_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
    return device->SubmitCopy(to, data + at, n, kind);
  }

  // Copies the same bytes as whole words to *to, which it reserves. Zeros fill the last 64-bit
  // word, and one such word of zeros follows it.
  Error SubmitWords(CudaDevice* device, size_t at, size_t n, CudaScratch* to) const {
    const size_t whole = n / 8 * 8, with_zeros = (n + 7) / 8 * 8 + 8;
    RETURN_ERROR(to->Reserve(with_zeros));
    uint8_t* const copy = to->as<uint8_t>();
    RETURN_ERROR(device->SubmitZeros(copy + whole, with_zeros - whole));
    return SubmitCopy(device, at, n, copy);
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

  // Returns the error for a malformed payload. The host finds out what is wrong, from the payload,
  // from the frame in which it came or from a copy.
  static Error Refused() {
    return MakeError(absl::StatusCode::kInvalidArgument, "a malformed payload");
  }
};

// Memory of one payload. Its body begins at a multiple of 64 bytes, as kernels need it, whatever
// the length of the header before it. Behind the body there is memory up to the next such multiple.
class DevicePayload {
 public:
  explicit DevicePayload(CudaDevice* device) : scratch_(device) {}

  // Reserves memory for a header and `bytes` bytes in all.
  Error Reserve(size_t header_bytes, size_t bytes) {
    constexpr size_t kAlignment = 64;
    const size_t padding = (kAlignment - header_bytes % kAlignment) % kAlignment;
    const size_t all = padding + bytes + kAlignment;
    RETURN_ERROR(scratch_.Reserve(all / kAlignment * kAlignment));
    bytes_ = scratch_.as<uint8_t>() + padding;
    body_ = bytes_ + header_bytes;
    return Error{};
  }

  uint8_t* bytes() const { return bytes_; }
  uint8_t* body() const { return body_; }

 private:
  CudaScratch scratch_;
  uint8_t* bytes_ = nullptr;
  uint8_t* body_ = nullptr;
};

}  // namespace thinwire
