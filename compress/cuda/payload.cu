#include "compress/cuda/payload.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

__global__ void FewBytesKernel(FewBytes bytes, uint8_t* to) {
  if (threadIdx.x < bytes.count) to[threadIdx.x] = bytes.of[threadIdx.x];
}

}  // namespace

Error SubmitFewBytes(CudaDevice* device, const FewBytes& bytes, uint8_t* to) {
  return Launch(device, dim3(1), dim3(32), FewBytesKernel, bytes, to);
}

}  // namespace thinwire
