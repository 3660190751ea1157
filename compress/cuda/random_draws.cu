#include "compress/cuda/entry_tiles.cuh"
#include "compress/cuda/kept.h"
#include "compress/cuda/keys.cuh"
#include "compress/cuda/philox.cuh"
#include "compress/cuda/random_draws.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;

// Draws are the upper 30 bits of each number, plus one: none is zero, which is never kept.
__global__ void DrawKernel(uint64_t seed, int64_t blocks, uint4* draws) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= blocks) return;
  uint32_t numbers[4];
  PhiloxNumbers(seed, static_cast<uint64_t>(i), numbers);
  uint4 four;
  four.x = (numbers[0] >> 2) + 1;
  four.y = (numbers[1] >> 2) + 1;
  four.z = (numbers[2] >> 2) + 1;
  four.w = (numbers[3] >> 2) + 1;
  draws[i] = four;
}

__device__ inline float FactorOf(const DrawFactors& factors, uint32_t index) {
  int64_t n = factors.scopes.elements;
  if (factors.counts != nullptr) {
    const int64_t scope =
        factors.scopes.strided ? index % factors.scopes.count : index / factors.scopes.elements;
    n = factors.counts[scope];
  }
  const int64_t kept = min(factors.most, n);
  return static_cast<float>(static_cast<double>(n) / static_cast<double>(kept));
}

__global__ void FactorsKernel(DrawFactors factors, const uint32_t* indices, const uint64_t* count,
                              float* values, uint32_t* largest) {
  const int64_t n = static_cast<int64_t>(*count);
  uint32_t magnitude = 0;
  for (int j = 0; j < kEntriesEach; ++j) {
    const int64_t i = int64_t{blockIdx.x} * kEntryTile + j * kEntryThreads + threadIdx.x;
    if (i >= n) break;
    const float product = values[i] * FactorOf(factors, indices[i]);
    values[i] = product;
    magnitude = max(magnitude, __float_as_uint(product) & kMagnitudeBits);
  }
  magnitude = WarpReduce<Greatest>(magnitude);
  if (threadIdx.x % kWarpThreads == 0 && magnitude > 0) atomicMax(largest, magnitude);
}

}  // namespace

Error ChosenByDraw::Submit(cudaStream_t stream, const Scopes& scopes, const CodecSpec& spec,
                           uint64_t seed, const SupportView* support) {
  const int64_t n = scopes.total, blocks = (n + 3) / 4;
  CudaScratch draws(device_);
  RETURN_ERROR(draws.Reserve(16 * (blocks + 1)));
  RETURN_ERROR(kept_.Reserve(BitmapBytes(n) + 8));
  RETURN_ERROR(offsets_.Reserve(TileOffsetsBytes(n)));
  RETURN_ERROR(Launch(stream, BlocksFor(blocks, kThreads), dim3(kThreads), DrawKernel, seed, blocks,
                      draws.as<uint4>()));
  const Keys keys = {draws.as<void>(), DType::kF32, WordsOf(support), n, n};
  const KeepRule rule = {NumKept(spec, scopes.elements), /*zeros=*/false};
  RETURN_ERROR(SubmitKeepLargest(device_, stream, keys, scopes, rule, kept_.as<uint32_t>(),
                                 /*nonfinite=*/nullptr));
  count_ = offsets_.as<uint64_t>() + NumTiles(n);
  return SubmitTileOffsets(stream, kept_.as<uint32_t>(), n, offsets_.as<uint64_t>());
}

Error SubmitDrawFactors(cudaStream_t stream, const DrawFactors& factors, const uint32_t* indices,
                        const uint64_t* count, int64_t most, float* values, uint32_t* largest) {
  return Launch(stream, BlocksFor(most, kEntryTile), dim3(kEntryThreads), FactorsKernel, factors,
                indices, count, values, largest);
}

}  // namespace thinwire
