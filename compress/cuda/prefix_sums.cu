#include "compress/cuda/prefix_sums.cuh"
#include "compress/cuda/prefix_sums.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 1024;

__global__ void __launch_bounds__(kThreads) PrefixSumsKernel(uint64_t* sums, int64_t n) {
  BlockPrefixSums(sums, n);
}

}  // namespace

Error SubmitPrefixSums(cudaStream_t stream, uint64_t* sums, int64_t n) {
  return Launch(stream, dim3(1), dim3(kThreads), PrefixSumsKernel, sums, n);
}

}  // namespace thinwire
