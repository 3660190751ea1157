#include "compress/cuda/draws.h"
#include "compress/cuda/keys.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;

__global__ void DrawKernel(uint64_t seed, int64_t fours, uint4* draws) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= fours) return;
  uint32_t four[4];
  DrawFour(seed, 4 * i, four);
  uint4 stored;
  stored.x = four[0], stored.y = four[1], stored.z = four[2], stored.w = four[3];
  draws[i] = stored;
}

}  // namespace

Error SubmitDraws(cudaStream_t stream, uint64_t seed, int64_t n, void* draws) {
  const int64_t fours = (n + 3) / 4;
  return Launch(stream, BlocksFor(fours, kThreads), dim3(kThreads), DrawKernel, seed, fours, draws);
}

}  // namespace thinwire
