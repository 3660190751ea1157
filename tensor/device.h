// One of a backend's three interfaces (the others: nn/ops.h, compress/kernels.h): where tensors
// live. Pure-virtual and plain data only, because backends may be plugins.
#pragma once

#include <cstddef>

#include "tensor/error.h"

namespace thinwire {

class Device {
 public:
  virtual ~Device() = default;

  virtual const char* name() const = 0;  // "cpu", "cuda:1"
  // True when host code may read and write device memory in place.
  virtual bool is_host() const = 0;

  // At least `bytes` bytes, aligned to 64, from a pool that keeps freed blocks for reuse.
  // ResourceExhausted says what was wanted and what is in use. Any thread.
  virtual Error Allocate(size_t bytes, void** memory) = 0;
  // `memory` from Allocate of this device. Any thread.
  virtual void Free(void* memory) = 0;
  virtual size_t bytes_in_use() const = 0;

  // Copies finish before they return.
  virtual Error CopyFromHost(void* device, const void* host, size_t bytes) = 0;
  virtual Error CopyToHost(void* host, const void* device, size_t bytes) = 0;
};

}  // namespace thinwire
