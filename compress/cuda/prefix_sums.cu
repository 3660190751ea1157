#include <algorithm>

#include "compress/cuda/prefix_sums.cuh"
#include "compress/cuda/prefix_sums.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 1024;

// Returns as many threads as n entries keep busy: most arrays are short.
dim3 ThreadsFor(int64_t n) {
  const int64_t warps = (n + kPrefixSumsOfWarp - 1) / kPrefixSumsOfWarp;
  const int64_t threads = std::max<int64_t>(warps, 1) * kWarpThreads;
  return dim3(static_cast<unsigned>(std::min<int64_t>(threads, kThreads)));
}

__global__ void __launch_bounds__(kThreads) PrefixSumsKernel(uint64_t* sums, int64_t n) {
  BlockPrefixSums(sums, n);
}

}  // namespace

Error SubmitPrefixSums(CudaDevice* device, uint64_t* sums, int64_t n) {
  return Launch(device, dim3(1), ThreadsFor(n), PrefixSumsKernel, sums, n);
}

}  // namespace thinwire
