// Page-locked host memory, which the device's copy engines reach without a detour.
#pragma once

#include <string>

#include "tensor/host_pool.h"

namespace thinwire {

// Good for every device of the process. Locking pages is slow: blocks are kept for good.
class PinnedMemory final : public HostPool {
 public:
  explicit PinnedMemory(std::string name) : name_(std::move(name)) {}
  const char* name() const override { return name_.c_str(); }

 private:
  void* Obtain(size_t bytes) override;

  const std::string name_;
};

}  // namespace thinwire
