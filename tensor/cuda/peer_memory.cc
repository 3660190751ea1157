#include "tensor/cuda/peer_memory.h"

#include <cstring>

#include "tensor/cuda/error.h"
#include "tensor/cuda/relaxed_capture.h"

namespace thinwire {
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == PeerMemoryHandle::kBytes);

// A peer opens whole pages of this size, so a block must share none with other memory.
constexpr size_t kPageBytes = 2 << 20;

}  // namespace

Error CudaPeerMemory::NewBlock(size_t bytes, Block* block) {
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));  // also makes the device the thread's
  const RelaxedCapture relaxed;
  block->bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  CUDA_RETURN_IF_ERROR(cudaMalloc(&block->memory, block->bytes));
  cudaIpcMemHandle_t handle;
  if (const cudaError_t code = cudaIpcGetMemHandle(&handle, block->memory); code != cudaSuccess) {
    (void)cudaFree(block->memory);
    return CudaError(code, "cudaIpcGetMemHandle");
  }
  std::memcpy(block->handle.bytes, &handle, sizeof(handle));
  device_->CountAsInUse(block->bytes);
  return Error{};
}

// Takes the smallest rested block that is large enough.
Error CudaPeerMemory::Allocate(size_t bytes, void** memory, PeerMemoryHandle* handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Clock::time_point rested = now_() - kRest;
  auto best = idle_.end();
  for (auto block = idle_.begin(); block != idle_.end(); ++block) {
    if (block->bytes < bytes || block->freed > rested) continue;
    if (best == idle_.end() || block->bytes < best->bytes) best = block;
  }
  Block block;
  if (best == idle_.end()) {
    RETURN_ERROR(NewBlock(bytes, &block));
  } else {
    block = *best;
    idle_.erase(best);
  }
  in_use_[block.memory] = block;
  *memory = block.memory;
  *handle = block.handle;
  return Error{};
}

void CudaPeerMemory::Free(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = in_use_.find(memory);
  found->second.freed = now_();
  idle_.push_back(found->second);
  in_use_.erase(found);
}

Error CudaPeerMemory::Open(const PeerMemoryHandle& handle, void** memory) {
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  const RelaxedCapture relaxed;
  cudaIpcMemHandle_t opened;
  std::memcpy(&opened, handle.bytes, sizeof(opened));
  CUDA_RETURN_IF_ERROR(cudaIpcOpenMemHandle(memory, opened, cudaIpcMemLazyEnablePeerAccess));
  return Error{};
}

void CudaPeerMemory::Close(void* memory) {
  cudaStream_t stream;
  if (!device_->Stream(&stream).ok()) return;
  const RelaxedCapture relaxed;
  (void)cudaIpcCloseMemHandle(memory);
}

}  // namespace thinwire
