#include "tensor/cuda/pinned_memory.h"

#include <cuda_runtime.h>

#include "tensor/cuda/relaxed_capture.h"

namespace thinwire {

void* PinnedMemory::Obtain(size_t bytes) {
  if (!streams_->MakeCurrent().ok()) return nullptr;
  const RelaxedCapture relaxed;
  void* memory = nullptr;
  if (cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) == cudaSuccess) return memory;
  (void)cudaGetLastError();  // null reports it
  return nullptr;
}

void PinnedMemory::Return(void* memory) {
  if (!streams_->MakeCurrent().ok()) return;
  const RelaxedCapture relaxed;
  (void)cudaFreeHost(memory);
}

}  // namespace thinwire
