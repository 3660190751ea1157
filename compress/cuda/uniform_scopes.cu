#include <cuda_runtime.h>

#include <type_traits>

#include "compress/cuda/extremes.cuh"
#include "compress/cuda/lines.cuh"
#include "compress/cuda/tile.cuh"
#include "compress/cuda/uniform_codes.cuh"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire {
namespace {

constexpr int kThreads = 1024;
constexpr int kAtOnce = 4;                 // vectors that a thread loads at a time
constexpr int64_t kStride = 4 * kThreads;  // between a thread's vectors
constexpr int64_t kMostBytes = 1 << 18;    // of a scope: a block on each multiprocessor has one

// How a range follows from extremes.
struct RangeRule {
  __device__ DecodeLine LineOf(const Extremes& e, int32_t divisor) const {
    const MinMax m = MinMaxOf(e);
    return range == Range::kMinMax ? MinMaxLine(m, zero, divisor) : DecodeLine{0, LargestOf(m)};
  }
  Range range;
  Zero zero;
};

template <typename T, typename Round>
__global__ void __launch_bounds__(kThreads, 1)
    EncodeScopesKernel(const T* x, int64_t n, int64_t elements, RangeRule rule, Grid grid,
                       Round round, Extremes* extremes, CodeWords words) {
  const int64_t begin = elements * blockIdx.x, end = min(begin + elements, n);
  Extremes e = ExtremesOfShare(x, begin, end, threadIdx.x, kThreads, Counted::kAll);
  e.greatest = BlockReduce<Greatest>(e.greatest);
  e.least = BlockReduce<Greatest>(e.least);
  if (threadIdx.x == 0) extremes[blockIdx.x] = e;
  SameLine<EncodeLine> line = {
      EncodeLineOf(rule.LineOf(e, grid.codes.divisor), grid.codes.divisor)};
  const WarpPacker packer(grid.bits);
  const int64_t lane = threadIdx.x % kWarpThreads;
  for (int64_t i = begin + 4 * threadIdx.x; i - 4 * lane < end; i += kAtOnce * kStride) {
    float v[kAtOnce][4];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) LoadVector(x + i + j * kStride, end - i - j * kStride, v[j]);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t at = i + j * kStride;
      const uint32_t piece = EncodedFour(v[j], at, LeftOf(end, at), grid, round, &line);
      if (at - 4 * lane < end) StoreCodes(words, packer, at, piece);
    }
  }
}

template <typename Round>
Error SubmitOf(CudaDevice* device, const TensorView& x, const CodecSpec& spec, const Round& round,
               const Scopes& scopes, Extremes* extremes, const CodeWords& words) {
  return WithTypedData(x, [&](const auto* elements) {
    using T = std::decay_t<decltype(*elements)>;
    return Launch(device, BlocksFor(scopes.count, 1), dim3(kThreads), EncodeScopesKernel<T, Round>,
                  elements, scopes.total, scopes.elements, RangeRule{spec.range, spec.zero},
                  Grid{spec.bits, GridOf(spec)}, round, extremes, words);
  });
}

// Returns whether blocks, one on each multiprocessor at a time, leave few of these idle at the end.
bool FillCard(int64_t blocks, int multiprocessors) {
  const int64_t rest = blocks % multiprocessors;
  return blocks >= multiprocessors &&
         (rest == 0 || 2 * rest >= multiprocessors || blocks >= 4 * multiprocessors);
}

}  // namespace

bool AreScopesOfBlocks(const TensorView& x, const CodecSpec& spec, const Scopes& scopes,
                       int multiprocessors) {
  return !scopes.strided && spec.range != Range::kFixedPoint &&
         FillCard(scopes.count, multiprocessors) && scopes.elements % kTile == 0 &&
         scopes.elements >= kAtOnce * kStride &&
         scopes.elements * static_cast<int64_t>(SizeOf(x.dtype)) <= kMostBytes;
}

Error SubmitUniformScopes(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                          uint64_t random_key, const Scopes& scopes, Extremes* extremes,
                          const CodeWords& words) {
  return spec.rounding == Rounding::kStochastic
             ? SubmitOf(device, x, spec, ByChance{random_key}, scopes, extremes, words)
             : SubmitOf(device, x, spec, ToNearest{}, scopes, extremes, words);
}

}  // namespace thinwire
