#include "compress/cuda/bitmap.cuh"
#include "compress/cuda/entry_list.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

// A block per tile, a lane per element.
template <typename T, typename Value>
__global__ void EntryListKernel(const T* x, int64_t n, RankedBits kept, RankedBits support,
                                Value* values, uint32_t* indices, uint32_t* largest) {
  __shared__ uint32_t support_bits[kTileWords];
  __shared__ uint32_t support_before[kTileWords];
  const int64_t num_words = NumWords(n);
  if (support.words != nullptr) {
    const TileWord own = LoadTileWord(support.words, num_words, support.offsets);
    support_bits[threadIdx.x] = own.bits;
    support_before[threadIdx.x] = static_cast<uint32_t>(own.before);
    __syncthreads();
  }
  const TileWord own = LoadTileWord(kept.words, num_words, kept.offsets);
  uint32_t magnitude = 0;
  const auto load = [&](int64_t i, bool is_kept, uint64_t) { return is_kept ? Load(x + i) : 0.0f; };
  VisitWords(own, n, load, [&](int64_t i, bool is_kept, uint64_t rank, float value) {
    if (!is_kept) return;
    Store(value, values + rank);
    magnitude = max(magnitude, __float_as_uint(value) & 0x7FFFFFFFu);
    if (indices == nullptr) return;
    uint32_t index = static_cast<uint32_t>(i);
    if (support.words != nullptr) {
      const int word = static_cast<int>(i / 32 % kTileWords);
      index = support_before[word] + __popc(BitsBelow(support_bits[word], i % 32));
    }
    indices[rank] = index;
  });
  if (largest == nullptr) return;
  magnitude = WarpReduce<Greatest>(magnitude);
  if (threadIdx.x % kWarpThreads == 0 && magnitude > 0) atomicMax(largest, magnitude);
}

template <typename T>
Error SubmitOf(cudaStream_t stream, const TensorView& x, const RankedBits& kept,
               const RankedBits& support, const EntryList& list) {
  const int64_t n = x.elements();
  const dim3 blocks = BlocksFor(NumTiles(n), 1);
  if (list.values_dtype == DType::kF32) {
    return Launch(stream, blocks, dim3(kTileWords), EntryListKernel<T, float>, x.data, n, kept,
                  support, list.values, list.indices, list.largest);
  }
  return Launch(stream, blocks, dim3(kTileWords), EntryListKernel<T, uint16_t>, x.data, n, kept,
                support, list.values, list.indices, list.largest);
}

}  // namespace

Error SubmitEntryList(cudaStream_t stream, const TensorView& x, const RankedBits& kept,
                      const RankedBits& support, const EntryList& list) {
  return x.dtype == DType::kF32 ? SubmitOf<float>(stream, x, kept, support, list)
                                : SubmitOf<uint16_t>(stream, x, kept, support, list);
}

}  // namespace thinwire
