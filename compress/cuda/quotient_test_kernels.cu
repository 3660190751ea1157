#include "compress/cuda/quotient.cuh"
#include "compress/cuda/quotient_test_kernels.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;

template <typename Divisor, int kCorrections>
__global__ void DivideKernel(const float* x, const float* d, int64_t n, float* quotients) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) quotients[i] = Divisor(d[i]).template Divide<kCorrections>(x[i]);
}

template <typename Divisor>
auto KernelFor(int corrections) {
  return corrections == 1 ? DivideKernel<Divisor, 1> : DivideKernel<Divisor, 2>;
}

}  // namespace

Error Quotients(CudaDevice* device, const std::vector<float>& x, const std::vector<float>& d,
                int corrections, bool is_ordinary, std::vector<float>* quotients) {
  CudaScratch x_memory(device), d_memory(device), out(device);
  const size_t bytes = x.size() * sizeof(float);
  quotients->resize(x.size());
  RETURN_ERROR(x_memory.Reserve(bytes));
  RETURN_ERROR(d_memory.Reserve(bytes));
  RETURN_ERROR(out.Reserve(bytes));
  RETURN_ERROR(device->CopyFromHost(x_memory.as<void>(), x.data(), bytes));
  RETURN_ERROR(device->CopyFromHost(d_memory.as<void>(), d.data(), bytes));
  const auto n = static_cast<int64_t>(x.size());
  RETURN_ERROR(Launch(
      device, BlocksFor(n, kThreads), dim3(kThreads),
      is_ordinary ? KernelFor<OrdinaryDivisor>(corrections) : KernelFor<Divisor>(corrections),
      x_memory.as<float>(), d_memory.as<float>(), n, out.as<float>()));
  return device->CopyToHost(quotients->data(), out.as<void>(), bytes);
}

}  // namespace thinwire
