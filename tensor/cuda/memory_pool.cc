#include "tensor/cuda/memory_pool.h"

#include <cstdint>

#include "tensor/cuda/error.h"

namespace thinwire {

Error MemoryPool::Open(int device) {
  CUDA_RETURN_IF_ERROR(cudaDeviceGetDefaultMemPool(&pool_, device));
  // Keeps all freed memory. By default each wait for a stream would release what is free at that
  // moment.
  uint64_t keep = UINT64_MAX;
  CUDA_RETURN_IF_ERROR(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep));
  return LetStreamsWait(false);
}

Error MemoryPool::LetStreamsWait(bool wait) {
  int value = wait;
  CUDA_RETURN_IF_ERROR(
      cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &value));
  return Error{};
}

Error MemoryPool::Allocate(cudaStream_t stream, size_t bytes, void** memory) {
  const size_t size = bytes == 0 ? 1 : bytes;
  void* block = nullptr;
  cudaError_t code = cudaMallocAsync(&block, size, stream);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    RETURN_ERROR(LetStreamsWait(true));
    CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream));
    CUDA_RETURN_IF_ERROR(cudaMemPoolTrimTo(pool_, 0));
    code = cudaMallocAsync(&block, size, stream);
  }
  if (code == cudaErrorMemoryAllocation) return OutOfMemory(bytes);
  CUDA_RETURN_IF_ERROR(code);
  const std::lock_guard<std::mutex> lock(mutex_);
  sizes_[block] = size;
  in_use_ += size;
  *memory = block;
  return Error{};
}

Error MemoryPool::OutOfMemory(size_t bytes) const {
  (void)cudaGetLastError();
  size_t free = 0, total = 0;
  CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free, &total));
  return MakeError(
      absl::StatusCode::kResourceExhausted,
      "%s: no memory for %zu bytes; %zu are in use by this process' tensors and links, "
      "%zu of the device's %zu are free",
      name_.c_str(), bytes, bytes_in_use(), free, total);
}

void MemoryPool::Free(cudaStream_t stream, void* memory) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sizes_.find(memory);
    in_use_ -= found->second;
    sizes_.erase(found);
  }
  // An error is one of earlier work; the next call that can report it does.
  (void)cudaFreeAsync(memory, stream);
}

void MemoryPool::CountAsInUse(size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  in_use_ += bytes;
}

void MemoryPool::Trim() { (void)cudaMemPoolTrimTo(pool_, 0); }

size_t MemoryPool::bytes_in_use() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return in_use_;
}

}  // namespace thinwire
