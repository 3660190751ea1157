#include <type_traits>

#include "compress/cuda/bitmap.cuh"
#include "compress/cuda/entry_list.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kWarps = kTileWords / static_cast<int>(kWarpThreads);
constexpr int kWarpBits = 32 * static_cast<int>(kWarpThreads);
constexpr int kNibblesOfWord = 8;  // each holds a lane's four elements
constexpr int kVectors = 8;        // per lane
constexpr int kAtOnce = 4;         // loads of a lane at a time

// Four neighbours among a warp's elements, which belong to one lane.
struct Four {
  uint32_t rank;  // rank of the first kept one among the warp's entries
  uint32_t kept;  // bit k: element k is kept
  int begin;      // place of the first among the warp's elements
};

// Returns the lane's four elements of a vector. In each lane, `ranks` is the number of the warp's
// entries before its word. The whole warp calls it.
__device__ inline Four FourOf(uint32_t bits, uint32_t ranks, int vector) {
  const unsigned lane = threadIdx.x % kWarpThreads;
  const int word = vector * 4 + static_cast<int>(lane) / kNibblesOfWord;
  const unsigned at = lane % kNibblesOfWord * 4;
  const uint32_t word_bits = __shfl_sync(kWholeWarp, bits, word);
  const uint32_t rank = __shfl_sync(kWholeWarp, ranks, word);
  return {rank + __popc(BitsBelow(word_bits, at)), word_bits >> at & 15,
          word * 32 + static_cast<int>(at)};
}

// Raises *largest to at least each thread's magnitude, unless it is null. Whole warps call it.
__device__ inline void RaiseTo(uint32_t magnitude, uint32_t* largest) {
  if (largest == nullptr) return;
  magnitude = WarpReduce<Greatest>(magnitude);
  if (threadIdx.x % kWarpThreads == 0 && magnitude > 0) atomicMax(largest, magnitude);
}

// Lists entries, a block per tile. A warp gathers the values of its 1024 elements in shared memory
// and then writes them side by side, so that stores are coalesced.
template <typename T, typename Value>
__global__ void EntryListKernel(const T* x, int64_t n, RankedBits kept, Value* values,
                                uint32_t* indices, uint32_t* largest, uint32_t* largest_of_all) {
  __shared__ Value staged[kWarps][kWarpBits];
  const TileWord own = LoadTileWord(kept.words, NumWords(n), kept.offsets);
  const unsigned lane = threadIdx.x % kWarpThreads;
  Value* const of_warp = staged[threadIdx.x / kWarpThreads];
  const int64_t begin = (int64_t{blockIdx.x} * kTileWords + threadIdx.x - lane) * 32;
  const uint64_t before = __shfl_sync(kWholeWarp, own.before, 0);
  const auto ranks = static_cast<uint32_t>(own.before - before);
  const uint32_t count =
      __shfl_sync(kWholeWarp, ranks + __popc(own.bits), static_cast<int>(kWarpThreads) - 1);
  uint32_t magnitude = 0, of_all = 0;
  for (int vector = 0; vector < kVectors; vector += kAtOnce) {
    Four fours[kAtOnce];
    float v[kAtOnce][4];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      fours[j] = FourOf(own.bits, ranks, vector + j);
      const int64_t i = begin + fours[j].begin;
      if (fours[j].kept != 0 || largest_of_all != nullptr) LoadVector(x + i, n - i, v[j]);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const Four& four = fours[j];
      uint32_t rank = four.rank;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const uint32_t own_magnitude = __float_as_uint(v[j][k]) & 0x7FFFFFFFu;
        if (largest_of_all != nullptr) of_all = max(of_all, own_magnitude);
        if ((four.kept >> k & 1) == 0) continue;
        Store(v[j][k], of_warp + rank);
        magnitude = max(magnitude, own_magnitude);
        if (indices != nullptr) {
          indices[before + rank] = static_cast<uint32_t>(begin + four.begin + k);
        }
        ++rank;
      }
    }
  }
  __syncwarp();
  for (uint32_t i = lane; i < count; i += kWarpThreads) values[before + i] = of_warp[i];
  RaiseTo(magnitude, largest);
  RaiseTo(of_all, largest_of_all);
}

}  // namespace

Error SubmitEntryList(CudaDevice* device, const TensorView& x, const RankedBits& kept,
                      const EntryList& list) {
  const int64_t n = x.elements();
  return WithTypedData(x, [&](const auto* elements) {
    using T = std::decay_t<decltype(*elements)>;
    return WithTypedData(list.values, [&](auto* values) {
      using Value = std::decay_t<decltype(*values)>;
      return Launch(device, BlocksFor(NumTiles(n), 1), dim3(kTileWords), EntryListKernel<T, Value>,
                    elements, n, kept, values, list.indices, list.largest, list.largest_of_all);
    });
  });
}

}  // namespace thinwire
