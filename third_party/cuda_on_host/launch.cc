#include "third_party/cuda_on_host/launch.h"

#include <cstdio>

#include "third_party/cuda_on_host/block.h"
#include "third_party/cuda_on_host/device.h"
#include "third_party/cuda_on_host/memory.h"
#include "third_party/cuda_on_host/stream.h"

namespace cuda_on_host {

cudaError_t SubmitKernel(dim3 grid, dim3 block, std::function<void()> thread, size_t shared_bytes,
                         cudaStream_t stream) {
  const bool block_fits =
      block.x > 0 && block.x <= 1024 && block.x % kWarp == 0 && block.y == 1 && block.z == 1;
  const bool grid_fits = grid.x > 0 && grid.x <= 0x7fffffffu && grid.y > 0 && grid.y <= 65535 &&
                         grid.z > 0 && grid.z <= 65535;
  if (!block_fits || !grid_fits || shared_bytes != 0) {
    fprintf(stderr,
            "cuda_on_host: a grid of (%u, %u, %u) blocks of (%u, %u, %u) threads with %zu bytes of "
            "dynamic shared memory; want blocks of one axis, a multiple of 32 up to 1024, and no "
            "dynamic shared memory\n",
            grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes);
    return Noted(cudaErrorInvalidConfiguration);
  }
  return Noted(
      Submit(stream, [grid, block, thread = std::move(thread)] { RunGrid(grid, block, thread); }));
}

bool IsForeignPointer(const void* pointer) {
  return pointer != nullptr && TypeOf(pointer, 0) == cudaMemoryTypeUnregistered;
}

cudaError_t RefuseArgument(int index) {
  fprintf(stderr,
          "cuda_on_host: argument %d of a kernel (the first is 0) points to memory that is neither "
          "the device's nor page-locked\n",
          index);
  return Noted(cudaErrorInvalidValue);
}

}  // namespace cuda_on_host
