#include "nn/adamw_factors.h"
#include "nn/cuda/adamw_element.cuh"
#include "nn/cuda/kernels.h"
#include "nn/cuda/parameter_update.cuh"
#include "nn/cuda/vectors.cuh"
#include "nn/moment_codes.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire::cuda {
namespace {

static_assert(kThreads == kMomentBlock, "a thread has a value of each block");

constexpr int kCodes = 256;
constexpr int64_t kMostBlocks = 4096;  // of a launch; they loop over blocks of values
__constant__ const MomentCode kOfMean = NewMomentCode(true);
__constant__ const MomentCode kOfSquare = NewMomentCode(false);

struct Arguments {
  GradientFactor factor;
  AdamWFactors f;
  AdamWParameter parameter;
  float shrink;
};

// Copies of a code, which threads read at places of their own.
struct Tables {
  float numbers[kCodes];
  float middles[kCodes - 1];
};

__device__ inline void CopyTables(const MomentCode& code, Tables* to) {
  const int i = static_cast<int>(threadIdx.x);
  to->numbers[i] = code.numbers[i];
  if (i + 1 < kCodes) to->middles[i] = code.middles[i];
}

// Writes the codes of a block's values and their scale; each thread has a value, or none.
__device__ inline void Quantize(const Tables& tables, float value, bool has_value, int64_t block,
                                const CodedMean& to) {
  const uint32_t key = has_value ? MomentKey(__float_as_uint(value)) : 0;
  const uint32_t scale = MomentScale(BlockReduce<Greatest>(key));
  if (threadIdx.x == 0) to.scales[block] = __uint_as_float(scale);
  if (!has_value) return;
  to.codes[block * kMomentBlock + threadIdx.x] =
      DividesMoments(scale) ? NearestMoment(tables.middles, value / __uint_as_float(scale)) : 0;
}

__global__ void UpdateCoded(Arguments a) {
  __shared__ Tables of_mean, of_square;
  const float factor = a.factor.Read();
  if (isnan(factor)) return;
  CopyTables(kOfMean, &of_mean);
  CopyTables(kOfSquare, &of_square);
  __syncthreads();
  const AdamWParameter& p = a.parameter;
  const int64_t blocks = NumMomentBlocks(p.n);
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t i = block * kMomentBlock + threadIdx.x;
    const bool has_value = i < p.n;
    float mean = 0, square = 0;
    if (has_value) {
      mean = of_mean.numbers[p.coded_mean.codes[i]] * p.coded_mean.scales[block];
      square = of_square.numbers[p.coded_square.codes[i]] * p.coded_square.scales[block];
      float value[1] = {p.value[i]};
      UpdateByAdamW(a.f, a.shrink, factor * p.gradient[i], value, &mean, &square);
      p.value[i] = value[0];
      p.gradient[i] = 0;
      if (p.narrow != nullptr) StoreAligned(value, p.narrow + i);
    }
    __syncthreads();  // all have read the scales
    Quantize(of_mean, mean, has_value, block, p.coded_mean);
    Quantize(of_square, square, has_value, block, p.coded_square);
  }
}

}  // namespace

Error CodedAdamW(CudaDevice* device, const AdamWUpdate& update, const AdamWParameter& parameter) {
  const Arguments arguments{{update.gradient_scale, update.clip_factor},
                            FactorsOf(update),
                            parameter,
                            ShrinkOf(update, parameter)};
  return Launch(device, BlocksFor(parameter.n, kThreads, kMostBlocks), dim3(kThreads), UpdateCoded,
                arguments);
}

}  // namespace thinwire::cuda
