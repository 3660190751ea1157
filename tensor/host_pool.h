// Host memory as a Device: blocks of a few sizes, kept for reuse until Trim. Where they come from
// (the heap, page-locked memory) is the subclass's.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "tensor/device.h"

namespace thinwire {

// Does not record. Its usage is its own only: the rest of the host is others' business.
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

  // `bytes` is a multiple of kAlignment. Null when there is no more.
  virtual void* Obtain(size_t bytes) = 0;
  // `memory` from Obtain.
  virtual void Return(void* memory) = 0;

 private:
  // absl::Mutex would not do: plugins use this too, and in a bundle they cannot link its tables.
  mutable std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_ ABSL_GUARDED_BY(mutex_);  // by size class
  std::unordered_map<void*, size_t> sizes_ ABSL_GUARDED_BY(mutex_);              // of used blocks
  size_t in_use_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace thinwire
