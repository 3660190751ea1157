// Device memory in the order of streams: a block that one stream frees is there for the next
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
  // `name`, of the device, is for errors.
  explicit MemoryPool(std::string name) : name_(std::move(name)) {}

  // To be called before all else.
  Error Open(int device);

  // Aligned to 64 (CUDA's blocks to 256); never null, also for no bytes. When memory is short,
  // waits for `stream`, gives back what the pool keeps, and from then on takes what other streams
  // free later, before it says ResourceExhausted.
  Error Allocate(cudaStream_t stream, size_t bytes, void** memory);
  // The memory is free once `stream` has come so far.
  void Free(cudaStream_t stream, void* memory);
  size_t bytes_in_use() const;
  // Gives back what the pool keeps and no stream may still use.
  void Trim();

 private:
  // Whether a stream may get memory that another one frees later, and then waits for that one: a
  // codec would wait for the computation that it is to run beside.
  Error LetStreamsWait(bool wait);
  Error OutOfMemory(size_t bytes) const;

  const std::string name_;
  cudaMemPool_t pool_ = nullptr;
  mutable std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_ ABSL_GUARDED_BY(mutex_);  // of used blocks
  size_t in_use_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace thinwire
