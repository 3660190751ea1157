#include "compress/cuda/entry_list.h"
#include "compress/cuda/values.cuh"
#include "compress/cuda/values.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

__global__ void NarrowKernel(const float* values, const uint64_t* count, bool is_half,
                             const uint32_t* largest, uint16_t* out) {
  const int64_t n = static_cast<int64_t>(*count);
  const float scale = is_half ? PowerOfTwo(PreScaleFor(FloatOf(*largest))) : 1;
  const int64_t first = int64_t{blockIdx.x} * kEntryTile + threadIdx.x;
  for (int j = 0; j < kEntriesEach; ++j) {
    const int64_t i = first + j * kEntryThreads;
    if (i < n) out[i] = is_half ? ScaledHalf(values[i], scale) : FiniteBFloat(values[i]);
  }
}

}  // namespace

Error SubmitNarrowValues(CudaDevice* device, const float* values, const uint64_t* count,
                         int64_t most, Values type, const uint32_t* largest, uint16_t* out) {
  return Launch(device, BlocksFor(most, kEntryTile), dim3(kEntryThreads), NarrowKernel, values,
                count, type == Values::kF16, largest, out);
}

}  // namespace thinwire
