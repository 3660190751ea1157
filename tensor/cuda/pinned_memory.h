// Page-locked host memory, which the device's copy engines reach without a detour.
#pragma once

#include <string>
#include <utility>

#include "tensor/cuda/streams.h"
#include "tensor/host_pool.h"

namespace thinwire {

// Valid for every device of the process. Locking pages is slow, so blocks are kept until Trim.
class PinnedMemory final : public HostPool {
 public:
  // `streams` belong to the device for which the pages are locked.
  PinnedMemory(std::string name, Streams* streams) : name_(std::move(name)), streams_(streams) {}
  const char* name() const override { return name_.c_str(); }

 private:
  void* Obtain(size_t bytes) override;
  void Return(void* memory) override;

  const std::string name_;
  Streams* const streams_;
};

}  // namespace thinwire
