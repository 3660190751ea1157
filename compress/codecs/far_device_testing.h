// Device for tests that uses the CPU's memory but is not the host. With the CPU's kernels it is a
// backend whose tensors host code must not touch. Counts the copies between the two.
#pragma once

#include <cstddef>

#include "tensor/cpu/device.h"

namespace thinwire {

class FarDevice final : public Device {
 public:
  const char* name() const override { return "far"; }
  bool is_host() const override { return false; }
  Device* host() override { return CpuDevice(); }
  Error Allocate(size_t bytes, void** memory) override {
    return CpuDevice()->Allocate(bytes, memory);
  }
  void Free(void* memory) override { CpuDevice()->Free(memory); }
  size_t bytes_in_use() const override { return CpuDevice()->bytes_in_use(); }
  void Trim() override { CpuDevice()->Trim(); }
  Error CopyFromHost(void* device, const void* host, size_t bytes) override {
    ++num_copies_from_host;
    return CpuDevice()->CopyFromHost(device, host, bytes);
  }
  Error CopyToHost(void* host, const void* device, size_t bytes) override {
    ++num_copies_to_host;
    return CpuDevice()->CopyToHost(host, device, bytes);
  }
  Error Finish() override { return Error{}; }
  Error NewRecorder(Recorder** recorder) override { return CpuDevice()->NewRecorder(recorder); }
  Error Usage(DeviceUsage* usage) override { return CpuDevice()->Usage(usage); }

  int num_copies_from_host = 0, num_copies_to_host = 0;
};

}  // namespace thinwire
