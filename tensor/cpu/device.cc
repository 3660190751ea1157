#include "tensor/cpu/device.h"

#include <cstdlib>

#include "tensor/host_pool.h"

namespace thinwire {
namespace {

class Heap final : public HostPool {
 public:
  const char* name() const override { return "cpu"; }

 private:
  void* Obtain(size_t bytes) override { return std::aligned_alloc(kAlignment, bytes); }
  void Return(void* memory) override { std::free(memory); }
};

}  // namespace

Device* CpuDevice() {
  static Device* const device = new Heap;
  return device;
}

}  // namespace thinwire
