#include "compress/cuda/sum_in_order.cuh"
#include "compress/cuda/sum_in_order_test_kernels.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

__global__ void __launch_bounds__(kSumThreads)
    SumKernel(const double* values, int64_t n, double* sums) {
  sums[threadIdx.x] = SumInOrder(values, n);
}

}  // namespace

Error SumInOrderByAll(CudaDevice* device, const std::vector<double>& values,
                      std::vector<double>* sums) {
  CudaScratch in(device), out(device);
  const size_t bytes = values.size() * sizeof(double);
  sums->resize(kSumThreads);
  RETURN_ERROR(in.Reserve(bytes));
  RETURN_ERROR(out.Reserve(sums->size() * sizeof(double)));
  RETURN_ERROR(device->CopyFromHost(in.as<void>(), values.data(), bytes));
  RETURN_ERROR(Launch(device, dim3(1), dim3(kSumThreads), SumKernel, in.as<double>(),
                      static_cast<int64_t>(values.size()), out.as<double>()));
  return device->CopyToHost(sums->data(), out.as<void>(), sums->size() * sizeof(double));
}

}  // namespace thinwire
