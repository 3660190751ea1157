// Device memory in the order of streams: a block that a stream has freed is available to the next
// allocation without a wait.
#pragma once

#include <cuda_runtime.h>

#include <mutex>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "tensor/error.h"

namespace thinwire {

// The pool of one device. Any thread whose current device it is.
class MemoryPool {
 public:
  // Makes a pool; `name` is that of the device, for errors.
  explicit MemoryPool(std::string name) : name_(std::move(name)) {}

  // Opens the pool. Called before all else.
  Error Open(int device);

  // Allocates memory aligned to 64 (CUDA's blocks to 256); never null, even for 0 bytes. If memory
  // is short, it waits for `stream` and releases what the pool keeps. From then on it also takes
  // what other streams free later. Only then it returns ResourceExhausted.
  Error Allocate(cudaStream_t stream, size_t bytes, void** memory);
  // Frees memory in the order of `stream`: it becomes free when the work submitted so far is done.
  void Free(cudaStream_t stream, void* memory);
  // Counts memory that is not the pool's in bytes_in_use, for ever.
  void CountAsInUse(size_t bytes);
  size_t bytes_in_use() const;
  // Releases what the pool keeps and no stream may still use.
  void Trim();

 private:
  // Sets whether a stream may get memory that another stream frees later, for which it then waits.
  // That is normally off, as a codec would wait for the computation that it should run beside.
  Error LetStreamsWait(bool wait);
  Error OutOfMemory(size_t bytes) const;

  const std::string name_;
  cudaMemPool_t pool_ = nullptr;
  mutable std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_ ABSL_GUARDED_BY(mutex_);  // of blocks in use
  size_t in_use_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace thinwire
