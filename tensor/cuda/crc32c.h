// CRC-32C (base/crc32c.h) of device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/cuda/device.h"

namespace thinwire {

// Results of the kernel, which the host puts together. In page-locked memory.
struct Crc32cParts {
  static constexpr size_t kStretchBytes = 32 << 10, kMostBytes = 4 << 20, kUnitBytes = 16;

  // The remainder (base/crc32c_polynomials.h) of the whole units of each stretch, the last of which
  // may be shorter.
  uint32_t remainders[kMostBytes / kStretchBytes];
  uint8_t tail[kUnitBytes];  // the bytes behind the last whole unit
};

// On the thread's stream, of 1 to kMostBytes bytes, aligned to 16.
Error SubmitCrc32c(CudaDevice* device, const void* bytes, size_t size, Crc32cParts* parts);

// The CRC of `size` bytes, once what was submitted for them is done.
uint32_t Crc32cOf(const Crc32cParts& parts, size_t size);

}  // namespace thinwire
