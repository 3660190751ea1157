#include <stdexcept>

#include "compress/cuda/kernels.h"
#include "compress/cuda/twin_testing.h"

namespace thinwire {
namespace {

Twin OpenTwin() {
  CudaDevice* device = nullptr;
  const Error error = NewCudaDevice(/*index=*/0, &device);
  if (!error.ok()) throw std::runtime_error(error.message);  // and so fails the test
  return {device, new CudaKernels(device)};
}

}  // namespace

Twin GpuTwin() {
  static const Twin twin = OpenTwin();
  return twin;
}

}  // namespace thinwire
