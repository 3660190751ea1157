// Host memory as a Device: blocks of a few sizes, which are kept for reuse until Trim. The subclass
// decides where they come from (the heap, page-locked memory).
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "tensor/device.h"

namespace thinwire {

// Does not record. Its usage counts only its own memory, not the rest of the host's.
class HostPool : public Device {
 public:
  bool is_host() const final { return true; }
  Device* host() final { return this; }

  Error Allocate(size_t bytes, void** memory) final;
  void Free(void* memory) final;
  size_t bytes_in_use() const final;
  void Trim() final;

  Error CopyFromHost(void* device, const void* host, size_t bytes) final;
  Error CopyToHost(void* host, const void* device, size_t bytes) final;
  Error Finish() final { return Error{}; }
  Error NewRecorder(Recorder** recorder) final;
  Error Usage(DeviceUsage* usage) final;

 protected:
  static constexpr size_t kAlignment = 64;

  // Obtains a block; null if there is no more memory. `bytes` is a multiple of kAlignment.
  virtual void* Obtain(size_t bytes) = 0;
  // Returns `memory`, which is from Obtain, to where it came from.
  virtual void Return(void* memory) = 0;

 private:
  // std: absl::Mutex cannot be used, since plugins use this code and cannot link its tables in a
  // bundle.
  mutable std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_ ABSL_GUARDED_BY(mutex_);  // by size class
  std::unordered_map<void*, size_t> sizes_ ABSL_GUARDED_BY(mutex_);              // of blocks in use
  size_t in_use_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace thinwire
