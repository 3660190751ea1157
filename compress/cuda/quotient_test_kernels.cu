#include "compress/cuda/quotient.cuh"
#include "compress/cuda/quotient_test_kernels.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;

// With kCorrections = 0 the divisors are OrdinaryDivisors.
template <int kCorrections>
__global__ void DivideKernel(const float* x, const float* d, int64_t n, float* quotients) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= n) return;
  if constexpr (kCorrections == 0) {
    quotients[i] = OrdinaryDivisor(d[i]).Divide(x[i]);
  } else {
    quotients[i] = Divisor(d[i]).Divide<kCorrections>(x[i]);
  }
}

}  // namespace

Error Quotients(CudaDevice* device, const std::vector<float>& x, const std::vector<float>& d,
                int corrections, std::vector<float>* quotients) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  CudaScratch x_memory(device), d_memory(device), out(device);
  const size_t bytes = x.size() * sizeof(float);
  quotients->resize(x.size());
  RETURN_ERROR(x_memory.Reserve(bytes));
  RETURN_ERROR(d_memory.Reserve(bytes));
  RETURN_ERROR(out.Reserve(bytes));
  RETURN_ERROR(device->CopyFromHost(x_memory.as<void>(), x.data(), bytes));
  RETURN_ERROR(device->CopyFromHost(d_memory.as<void>(), d.data(), bytes));
  const auto n = static_cast<int64_t>(x.size());
  RETURN_ERROR(Launch(stream, BlocksFor(n, kThreads), dim3(kThreads),
                      corrections == 0   ? DivideKernel<0>
                      : corrections == 1 ? DivideKernel<1>
                                         : DivideKernel<2>,
                      x_memory.as<float>(), d_memory.as<float>(), n, out.as<float>()));
  return device->CopyToHost(quotients->data(), out.as<void>(), bytes);
}

}  // namespace thinwire
