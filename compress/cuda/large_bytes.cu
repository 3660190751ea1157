#include "compress/cuda/large_bytes.cuh"
#include "compress/cuda/large_bytes.h"
#include "compress/cuda/prefix_sums.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

// Counts the large bytes of each tile.
__global__ void CountKernel(const uint8_t* bytes, int64_t n, uint8_t least, uint64_t* counts) {
  const uint32_t count = LargeTile(bytes, n, least).Count();
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// Lists each tile's large bytes where its offset says.
__global__ void ListKernel(const uint8_t* bytes, int64_t n, uint8_t least, const uint64_t* offsets,
                           uint8_t* values, int64_t* places) {
  LargeTile(bytes, n, least).ForEach(offsets[blockIdx.x], [&](int64_t i, uint64_t rank) {
    if (values != nullptr) values[rank] = bytes[i];
    if (places != nullptr) places[rank] = i;
  });
}

}  // namespace

int64_t NumLargeTiles(int64_t n) { return (n + kLargeTile - 1) / kLargeTile; }

size_t LargeOffsetsBytes(int64_t n) { return sizeof(uint64_t) * (NumLargeTiles(n) + 1); }

Error SubmitLargeOffsets(CudaDevice* device, const uint8_t* bytes, int64_t n, uint8_t least,
                         uint64_t* offsets) {
  RETURN_ERROR(Launch(device, BlocksFor(n, kLargeTile), dim3(kLargeThreads), CountKernel, bytes, n,
                      least, offsets));
  return SubmitPrefixSums(device, offsets, NumLargeTiles(n));
}

Error SubmitLargeList(CudaDevice* device, const uint8_t* bytes, int64_t n, uint8_t least,
                      const uint64_t* offsets, uint8_t* values, int64_t* places) {
  return Launch(device, BlocksFor(n, kLargeTile), dim3(kLargeThreads), ListKernel, bytes, n, least,
                offsets, values, places);
}

}  // namespace thinwire
