// The memory of one recorder: what its recordings allocate stays theirs, at the same addresses.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "tensor/cuda/free_blocks.h"
#include "tensor/cuda/memory_pool.h"
#include "tensor/cuda/streams.h"
#include "tensor/error.h"

namespace thinwire {

// Takes chunks from the device's pool and returns all of them when it is destroyed. No work on them
// may be under way then. Any thread whose current device it is, recording or not.
class Arena {
 public:
  static Error New(Streams* streams, MemoryPool* pool, std::unique_ptr<Arena>* arena);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Error Allocate(size_t bytes, void** memory);
  void Free(void* memory);

 private:
  Arena(Streams* streams, MemoryPool* pool, cudaStream_t stream)
      : streams_(streams), pool_(pool), stream_(stream) {}
  Error AddChunk(size_t bytes);

  Streams* const streams_;
  MemoryPool* const pool_;
  const cudaStream_t stream_;  // separate from the threads' streams, one of which may be recording
  std::mutex mutex_;
  FreeBlocks blocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<void*> chunks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
