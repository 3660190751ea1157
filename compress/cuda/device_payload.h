// Payload in device memory, on its way to or from the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire {

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
