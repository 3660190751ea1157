#include "compress/cuda/entry_list.h"
#include "compress/cuda/kept.h"
#include "compress/cuda/keys.cuh"
#include "compress/cuda/random_draws.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

// Returns fp32(n / K) for a scope in which n elements drew.
__device__ inline float FactorOf(const DrawFactors& factors, int64_t n) {
  const int64_t kept = min(factors.most, n);
  return static_cast<float>(static_cast<double>(n) / static_cast<double>(kept));
}

__device__ inline int64_t ScopeOf(const Scopes& scopes, uint32_t index) {
  return scopes.strided ? index % scopes.count : index / scopes.elements;
}

// Multiplies kept values by their scopes' factors.
__global__ void FactorsKernel(DrawFactors factors, const uint32_t* indices, const uint64_t* count,
                              float* values, uint32_t* largest) {
  const int64_t n = static_cast<int64_t>(*count);
  const float of_whole_scope = FactorOf(factors, factors.scopes.elements);
  uint32_t magnitude = 0;
  for (int j = 0; j < kEntriesEach; ++j) {
    const int64_t i = int64_t{blockIdx.x} * kEntryTile + j * kEntryThreads + threadIdx.x;
    if (i >= n) break;
    const float factor =
        factors.counts == nullptr
            ? of_whole_scope
            : FactorOf(factors, factors.counts[ScopeOf(factors.scopes, indices[i])]);
    const float product = values[i] * factor;
    values[i] = product;
    magnitude = max(magnitude, __float_as_uint(product) & kMagnitudeBits);
  }
  magnitude = WarpReduce<Greatest>(magnitude);
  if (threadIdx.x % kWarpThreads == 0 && magnitude > 0) atomicMax(largest, magnitude);
}

}  // namespace

Error ChosenByDraw::Submit(const Scopes& scopes, const CodecSpec& spec, uint64_t seed,
                           const SupportView* support) {
  const int64_t n = scopes.total;
  RETURN_ERROR(kept_.Reserve(BitmapBytes(n) + 8));
  const Keys keys = {/*data=*/nullptr, DType::kF32, WordsOf(support), n, n, seed};
  const int64_t k = NumKept(spec, scopes.elements);
  const KeepRule rule = {k, k, /*zeros=*/false};
  RETURN_ERROR(SubmitKeepLargest(device_, keys, scopes, rule, kept_.as<uint32_t>(),
                                 /*nonfinite=*/nullptr));
  return ranked_.Submit(kept_.as<uint32_t>(), n);
}

Error SubmitDrawFactors(CudaDevice* device, const DrawFactors& factors, const uint32_t* indices,
                        const uint64_t* count, int64_t most, float* values, uint32_t* largest) {
  return Launch(device, BlocksFor(most, kEntryTile), dim3(kEntryThreads), FactorsKernel, factors,
                indices, count, values, largest);
}

}  // namespace thinwire
