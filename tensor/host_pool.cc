#include "tensor/host_pool.h"

#include <unistd.h>

#include <cstring>

#include "absl/numeric/bits.h"

namespace thinwire {
namespace {

// Rounds up to quarter steps between powers of two (at most 25 % waste), so that the tensors of a
// training loop find their own blocks again in the next step.
size_t RoundToClass(size_t bytes) {
  if (bytes <= 256) return 256;
  const size_t quarter = absl::bit_ceil(bytes) / 8;
  return (bytes + quarter - 1) / quarter * quarter;
}

}  // namespace

Error HostPool::Allocate(size_t bytes, void** memory) {
  const size_t size = RoundToClass(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<void*>& kept = free_[size];
  if (!kept.empty()) {
    *memory = kept.back();
    kept.pop_back();
  } else {
    *memory = Obtain(size);
    if (*memory == nullptr) {
      return MakeError(absl::StatusCode::kResourceExhausted,
                       "%s: no memory for %zu bytes, %zu are in use", name(), bytes, in_use_);
    }
  }
  in_use_ += size;
  sizes_[*memory] = size;
  return Error{};
}

void HostPool::Free(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = sizes_.find(memory);
  free_[found->second].push_back(memory);
  in_use_ -= found->second;
  sizes_.erase(found);
}

size_t HostPool::bytes_in_use() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return in_use_;
}

void HostPool::Trim() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [size, kept] : free_) {
    for (void* memory : kept) Return(memory);
  }
  free_.clear();
}

Error HostPool::CopyFromHost(void* device, const void* host, size_t bytes) {
  if (bytes > 0) std::memcpy(device, host, bytes);
  return Error{};
}

Error HostPool::CopyToHost(void* host, const void* device, size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
  return Error{};
}

Error HostPool::NewRecorder(Recorder** /*recorder*/) {
  return MakeError(absl::StatusCode::kUnimplemented, "%s: does not record", name());
}

Error HostPool::Usage(DeviceUsage* usage) {
  *usage = DeviceUsage();
  usage->bytes_total =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  usage->bytes_used = bytes_in_use();
  return Error{};
}

}  // namespace thinwire
