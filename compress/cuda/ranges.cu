#include <cuda_runtime.h>

#include <algorithm>

#include "compress/cuda/extremes.cuh"
#include "compress/cuda/ranges.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 1024;  // of the kernel that ends with atomic operations

__device__ int64_t ThreadIndex() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Writes minimum and range of each scope, a thread per scope.
__global__ void MinMaxKernel(const Extremes* extremes, int64_t count, Zero zero, int32_t divisor,
                             float* header, UniformEncoded* found) {
  const int64_t s = ThreadIndex();
  if (s >= count) return;
  if (LargestMagnitude(extremes[s]) >= kInfinityBits) atomicMax(&found->nonfinite, 1u);
  const DecodeLine line = MinMaxLine(MinMaxOf(extremes[s]), zero, divisor);
  // The complement of the first scope is the largest; zero means that none overflows.
  if (!IsUsable(line)) atomicMax(&found->overflow, ~static_cast<unsigned long long>(s));
  header[2 * s] = line.offset;
  header[2 * s + 1] = line.range;
}

// Writes the largest magnitude of each scope, a thread per scope.
__global__ void MaxAbsKernel(const Extremes* extremes, int64_t count, float* header,
                             UniformEncoded* found) {
  const int64_t s = ThreadIndex();
  if (s >= count) return;
  if (LargestMagnitude(extremes[s]) >= kInfinityBits) atomicMax(&found->nonfinite, 1u);
  header[s] = LargestOf(MinMaxOf(extremes[s]));
}

// Finds what the pre-scale exponent depends on, over all scopes.
__global__ void FixedPointFindings(const Extremes* extremes, int64_t count, UniformEncoded* found) {
  const float first = MinMaxOf(extremes[0]).min;
  uint32_t largest = 0, varies = 0;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t s = ThreadIndex(); s < count; s += step) {
    const MinMax m = MinMaxOf(extremes[s]);
    largest = max(largest, LargestMagnitude(extremes[s]));
    if (!(m.min == first && m.max == first)) varies = 1;
  }
  largest = BlockReduce<Greatest>(largest);
  varies = BlockReduce<Greatest>(varies);
  if (threadIdx.x != 0) return;
  atomicMax(&found->largest, largest);
  atomicMax(&found->varies, varies);
  if (largest >= kInfinityBits) atomicMax(&found->nonfinite, 1u);
  if (blockIdx.x == 0) found->constant = first + 0.0f;  // -0 becomes 0
}

// Writes the pre-scale exponent and the scale of each scope, a thread per scope.
__global__ void FixedPointKernel(const Extremes* extremes, int64_t count, uint16_t* header,
                                 const UniformEncoded* found) {
  const int64_t s = ThreadIndex();
  if (s >= count) return;
  const int16_t exponent = found->nonfinite != 0 ? 0 : PreScaleFor(FloatOf(found->largest));
  if (s == 0) header[0] = static_cast<uint16_t>(exponent);
  header[1 + s] = FixedPointScale(MinMaxOf(extremes[s]), exponent);
}

__global__ void CheckKernel(RangeHeader header, int64_t count, uint32_t* refused) {
  const int64_t s = ThreadIndex();
  if (s >= count) return;
  const bool is_half = header.range != Range::kFixedPoint || header.half(s) < 0x7C00;
  if (!is_half || !IsUsable(header.Read(s))) *refused = 1;
}

}  // namespace

Error SubmitRanges(CudaDevice* device, const Extremes* extremes, const CodecSpec& spec,
                   const Scopes& scopes, uint8_t* header, UniformEncoded* found) {
  const int64_t count = scopes.count;
  const dim3 grid = BlocksFor(count, kThreads), block(kThreads);
  switch (spec.range) {
    case Range::kMinMax:
      return Launch(device, grid, block, MinMaxKernel, extremes, count, spec.zero,
                    GridOf(spec).divisor, reinterpret_cast<float*>(header), found);
    case Range::kMaxAbs:
      return Launch(device, grid, block, MaxAbsKernel, extremes, count,
                    reinterpret_cast<float*>(header), found);
    case Range::kFixedPoint:
      RETURN_ERROR(Launch(device, BlocksFor(count, kThreads, kMostBlocks), block,
                          FixedPointFindings, extremes, count, found));
      return Launch(device, grid, block, FixedPointKernel, extremes, count,
                    reinterpret_cast<uint16_t*>(header), found);
  }
  return Error{};
}

Error SubmitCheckRanges(CudaDevice* device, const uint8_t* header, const CodecSpec& spec,
                        const Scopes& scopes, uint32_t* refused) {
  return Launch(device, BlocksFor(scopes.count, kThreads), dim3(kThreads), CheckKernel,
                RangeHeader{header, spec.range}, scopes.count, refused);
}

}  // namespace thinwire
