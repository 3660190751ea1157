// Scratch memory of a library's call, aligned as libraries want it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Lives for the length of a scope, on the calling thread's stream, and is recorded with it.
class Workspace {
 public:
  static constexpr size_t kAlignmentBytes = 256;  // cuBLASLt's wish

  explicit Workspace(CudaDevice* device) : scratch_(device) {}

  Error Reserve(size_t bytes) {
    data_ = nullptr;
    if (bytes == 0) return Error{};
    RETURN_ERROR(scratch_.Reserve(bytes + kAlignmentBytes));
    const auto address = reinterpret_cast<uintptr_t>(scratch_.as<char>());
    data_ = scratch_.as<char>() + (kAlignmentBytes - address % kAlignmentBytes) % kAlignmentBytes;
    return Error{};
  }
  // Null when no bytes were reserved.
  void* data() const { return data_; }

 private:
  CudaScratch scratch_;
  void* data_ = nullptr;
};

}  // namespace thinwire::cuda
