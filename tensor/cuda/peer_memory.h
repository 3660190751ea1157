// Device memory that another process opens (CUDA's interprocess memory).
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "tensor/cuda/device.h"
#include "tensor/direct_copies.h"

namespace thinwire {

// Memory of one device. CUDA leaves undefined what becomes of memory that is freed while a peer has
// it open, so blocks are never freed. A peer whose link has just ended may still be writing, so a
// block rests before it is allocated again.
class CudaPeerMemory final : public PeerMemory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kRest{5};

  explicit CudaPeerMemory(CudaDevice* device, Clock::time_point (*now)() = &Clock::now)
      : device_(device), now_(now) {}

  Error Allocate(size_t bytes, void** memory, PeerMemoryHandle* handle) override;
  void Free(void* memory) override;
  Error Open(const PeerMemoryHandle& handle, void** memory) override;
  void Close(void* memory) override;

 private:
  struct Block {
    void* memory = nullptr;
    size_t bytes = 0;
    PeerMemoryHandle handle;
    Clock::time_point freed;
  };

  Error NewBlock(size_t bytes, Block* block);

  CudaDevice* const device_;
  Clock::time_point (*const now_)();
  std::mutex mutex_;
  std::vector<Block> idle_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<void*, Block> in_use_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
