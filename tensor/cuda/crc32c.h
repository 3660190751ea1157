// Computes CRC-32C (base/crc32c.h) of device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/cuda/device.h"

namespace thinwire {

// Results of the kernel, in page-locked memory; the host combines them.
struct Crc32cParts {
  static constexpr size_t kStretchBytes = 32 << 10, kMostBytes = 4 << 20, kUnitBytes = 16;

  // Remainders (base/crc32c_polynomials.h) of the whole units of each stretch, of which the last
  // may be shorter.
  uint32_t remainders[kMostBytes / kStretchBytes];
  uint8_t tail[kUnitBytes];  // bytes behind the last whole unit
};

// Submits the kernel on the thread's stream, for 1 to kMostBytes bytes aligned to 16.
Error SubmitCrc32c(CudaDevice* device, const void* bytes, size_t size, Crc32cParts* parts);

// Returns the CRC of `size` bytes from `parts`, once the work submitted for them is done.
uint32_t Crc32cOf(const Crc32cParts& parts, size_t size);

}  // namespace thinwire
