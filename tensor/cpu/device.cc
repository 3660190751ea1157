#include "tensor/cpu/device.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/bits.h"

namespace thinwire {
namespace {

constexpr size_t kAlignment = 64;

// Blocks are rounded up to quarter steps between powers of two (at most 25 % waste), so that the
// tensors of a training loop find their own blocks again in the next step.
size_t RoundToClass(size_t bytes) {
  if (bytes <= 256) return 256;
  const size_t quarter = absl::bit_ceil(bytes) / 8;
  return (bytes + quarter - 1) / quarter * quarter;
}

class PooledHostMemory final : public Device {
 public:
  const char* name() const override { return "cpu"; }
  bool is_host() const override { return true; }
  Device* host() override { return this; }

  Error Allocate(size_t bytes, void** memory) override {
    const size_t size = RoundToClass(bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<void*>& kept = free_[size];
    if (!kept.empty()) {
      *memory = kept.back();
      kept.pop_back();
    } else {
      *memory = std::aligned_alloc(kAlignment, size);
      if (*memory == nullptr) {
        return MakeError(absl::StatusCode::kResourceExhausted,
                         "cpu: no memory for %zu bytes, %zu are in use", bytes, in_use_);
      }
    }
    in_use_ += size;
    sizes_[*memory] = size;
    return Error{};
  }

  void Free(void* memory) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sizes_.find(memory);
    free_[found->second].push_back(memory);
    in_use_ -= found->second;
    sizes_.erase(found);
  }

  size_t bytes_in_use() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return in_use_;
  }

  Error CopyFromHost(void* device, const void* host, size_t bytes) override {
    std::memcpy(device, host, bytes);
    return Error{};
  }
  Error CopyToHost(void* host, const void* device, size_t bytes) override {
    std::memcpy(host, device, bytes);
    return Error{};
  }
  Error Finish() override { return Error{}; }
  Error NewRecorder(Recorder** /*recorder*/) override {
    return MakeError(absl::StatusCode::kUnimplemented, "cpu: does not record");
  }
  // A stage reports its own memory only: the rest of the host is others' business.
  Error Usage(DeviceUsage* usage) override {
    *usage = DeviceUsage();
    usage->bytes_total = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    usage->bytes_used = bytes_in_use();
    return Error{};
  }

 private:
  mutable std::mutex mutex_;                              // guards the rest
  absl::flat_hash_map<size_t, std::vector<void*>> free_;  // by size class
  absl::flat_hash_map<void*, size_t> sizes_;              // of used blocks
  size_t in_use_ = 0;
};

}  // namespace

Device* CpuDevice() {
  static Device* const device = new PooledHostMemory;
  return device;
}

}  // namespace thinwire
