// A payload in device memory, on its way to or from the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire {

// A header of any length and a body that begins at a multiple of 64 bytes, as kernels want it,
// whatever the header's length; behind the body there is memory up to the next such multiple.
class DevicePayload {
 public:
  explicit DevicePayload(CudaDevice* device) : scratch_(device) {}

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
