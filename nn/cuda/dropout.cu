#include "nn/checks.h"
#include "nn/cuda/dropout_mask.cuh"
#include "nn/cuda/kernels.h"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

constexpr int64_t kVectorsEach = 4;  // vectors of a thread

// Each block has kVectorsEach * 256 neighbouring vectors of one sample, which consists of whole
// vectors.
template <typename T, int kN>
__global__ void DropElements(const T* x, T* y, DropoutMasks masks, int64_t first_element,
                             int64_t features, int64_t blocks_of_sample) {
  const int64_t sample = blockIdx.x / blocks_of_sample;
  const SampleMask mask(masks, sample);
  const int64_t begin = blockIdx.x % blocks_of_sample * kVectorsEach * kThreads + threadIdx.x;
#pragma unroll
  for (int64_t k = 0; k < kVectorsEach; ++k) {
    const int64_t at = (begin + k * kThreads) * kN;
    if (at >= features) return;
    float values[kN];
    LoadAligned(x + sample * features + at, values);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      values[i] = mask.Keeps(static_cast<uint32_t>(first_element + at + i))
                      ? masks.scale * values[i]
                      : 0.0f;
    }
    StoreAligned(values, y + sample * features + at);
  }
}

}  // namespace

Error Kernels::Drop(const Dropout& a) {
  RETURN_ERROR(CheckDropout(a));
  const int64_t elements = a.x.elements();
  if (elements == 0) return Error{};
  const int64_t samples = a.x.dims[0], features = elements / samples;
  const bool wide = features % WideOf(a.x.dtype) == 0 && AreAligned(a.x.data, a.y.data);
  return WithElements(a.x.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    constexpr int64_t kBlock = kVectorsEach * kThreads * kN;
    const int64_t blocks_of_sample = (features + kBlock - 1) / kBlock;
    return Launch(device_, BlocksWith(1, samples * blocks_of_sample), dim3(kThreads),
                  DropElements<T, kN>, static_cast<const T*>(a.x.data), static_cast<T*>(a.y.data),
                  MasksOf(a.key, a.first_sample, a.rate), a.first_element, features,
                  blocks_of_sample);
  });
}

}  // namespace thinwire::cuda
