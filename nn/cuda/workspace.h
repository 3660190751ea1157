// Scratch memory for a library's call, aligned as libraries need it, and its maximum size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Sets *bytes to the maximum for a convolution. It is a share of the device's memory, since each
// recorded pass keeps its own. It is the same on equal devices, whoever else uses them.
inline Error MostWorkspaceBytes(CudaDevice* device, int64_t* bytes) {
  DeviceUsage usage;
  RETURN_ERROR(device->Usage(&usage));
  *bytes = static_cast<int64_t>(std::min<uint64_t>(usage.bytes_total / 32, uint64_t{1} << 30));
  return Error{};
}

// Memory for the duration of a scope, on the calling thread's stream; it is recorded with it.
class Workspace {
 public:
  static constexpr size_t kAlignmentBytes = 256;  // what cuBLASLt asks for

  explicit Workspace(CudaDevice* device) : scratch_(device) {}

  Error Reserve(size_t bytes) {
    data_ = nullptr;
    if (bytes == 0) return Error{};
    RETURN_ERROR(scratch_.Reserve(bytes + kAlignmentBytes));
    const auto address = reinterpret_cast<uintptr_t>(scratch_.as<char>());
    data_ = scratch_.as<char>() + (kAlignmentBytes - address % kAlignmentBytes) % kAlignmentBytes;
    return Error{};
  }
  // Returns null if no bytes were reserved.
  void* data() const { return data_; }

 private:
  CudaScratch scratch_;
  void* data_ = nullptr;
};

}  // namespace thinwire::cuda
