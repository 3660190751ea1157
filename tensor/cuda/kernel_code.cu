#include "tensor/cuda/kernel_code.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

__global__ void Nothing() {}

Error NoCodeFor(int device) {
  cudaDeviceProp properties;
  CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, device));
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   "cuda:%d: this build has no code for %s, of compute capability %d.%d, want one "
                   "with --define=cuda_arch=all, which is for 8.0 and later",
                   device, properties.name, properties.major, properties.minor);
}

}  // namespace

Error CheckRunsKernels(int device, cudaStream_t stream) {
  void* none[] = {nullptr};
  const cudaError_t code = cudaLaunchKernel(Nothing, dim3(1), dim3(32), none, 0, stream);
  if (code == cudaErrorNoKernelImageForDevice) {
    (void)cudaGetLastError();
    return NoCodeFor(device);
  }
  CUDA_RETURN_IF_ERROR(code);
  CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream));
  return Error{};
}

}  // namespace thinwire
