#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/codecs.h"
#include "compress/half.h"
#include "compress/refusals.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 4096;

// Finds the complement of the first index that is not finite: the largest of all complements; zero
// means none. A null `support` stands for all elements.
template <typename T>
__global__ void FindFirst(const T* x, int64_t n, const uint64_t* support,
                          unsigned long long* complement) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    if ((__float_as_uint(Load(x + i)) & kMagnitudeMask) < kInfinityBits) continue;
    if (support != nullptr && (support[i / 64] >> (i % 64) & 1) == 0) continue;
    atomicMax(complement, ~static_cast<unsigned long long>(i));
    return;
  }
}

float ValueOf(float x) { return x; }
float ValueOf(uint16_t b) { return FromBFloat(b); }

template <typename T>
Error ErrorOf(CudaDevice* device, const char* codec, const T* x, int64_t n,
              const uint64_t* support) {
  CudaScratch scratch(device);
  RETURN_ERROR(scratch.ReserveZeros(sizeof(unsigned long long)));
  auto* const found = scratch.as<unsigned long long>();
  RETURN_ERROR(Launch(device, BlocksFor(n, kThreads, kMostBlocks), dim3(kThreads), FindFirst<T>, x,
                      n, support, found));
  unsigned long long complement = 0;
  RETURN_ERROR(device->CopyToHost(&complement, found, sizeof(complement)));
  if (complement == 0) {
    return MakeError(absl::StatusCode::kInternal, "%s: no element is NaN or infinite", codec);
  }
  const int64_t first = static_cast<int64_t>(~complement);
  T element;
  RETURN_ERROR(device->CopyToHost(&element, x + first, sizeof(element)));
  return NonFiniteElement(codec, first, ValueOf(element));
}

}  // namespace

Error CudaNonFiniteError(CudaDevice* device, const char* codec, const TensorView& x,
                         const SupportView* support) {
  const uint64_t* const words = support == nullptr ? nullptr : support->words;
  return WithTypedData(x, [&](const auto* elements) {
    return ErrorOf(device, codec, elements, x.elements(), words);
  });
}

}  // namespace thinwire
