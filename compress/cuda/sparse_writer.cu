#include <type_traits>

#include "compress/cuda/bitmap.cuh"
#include "compress/cuda/sparse_writer.h"
#include "compress/cuda/values.cuh"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

// Writes a tile: an element whose bit is set takes the value of its rank, others are zero.
template <typename T>
__global__ void SparseKernel(RankedBits bits, WireValues values, uint64_t count, int64_t n, T* x,
                             uint32_t* fault) {
  const TileWord own = LoadTileWord(bits.words, NumWords(n), bits.offsets);
  bool finite = true;
  const auto load = [&](int64_t, bool is_set, uint64_t rank) {
    return is_set && rank < count ? ValueAt(values, static_cast<int64_t>(rank)) : 0.0f;
  };
  VisitWords(own, n, load, [&](int64_t i, bool, uint64_t, float value) {
    finite &= (BitsOf(value) & kMagnitudeMask) < kInfinityBits;
    Store(value, x + i);
  });
  if (!finite && fault != nullptr) atomicOr(fault, 1u);
}

}  // namespace

Error SubmitSparse(CudaDevice* device, const RankedBits& bits, const WireValues& values,
                   int64_t count, const TensorView& x, uint32_t* fault) {
  const int64_t n = x.elements();
  const dim3 blocks = BlocksFor(NumTiles(n), 1);
  return WithTypedData(x, [&](auto* elements) {
    using T = std::decay_t<decltype(*elements)>;
    return Launch(device, blocks, dim3(kTileWords), SparseKernel<T>, bits, values, count, n,
                  elements, fault);
  });
}

}  // namespace thinwire
