#include "compress/cuda/bitmap.cuh"
#include "compress/cuda/entry_list.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kWarps = kTileWords / static_cast<int>(kWarpThreads);
constexpr int kWarpBits = 32 * static_cast<int>(kWarpThreads);
constexpr int kNibblesOfWord = 8;  // a lane's four elements each
constexpr int kVectors = 8;        // of a lane
constexpr int kAtOnce = 4;         // loads of a lane under way

// Four neighbours of a warp's elements, those of a lane.
struct Four {
  uint32_t rank;  // of the first that is kept, among the warp's entries
  uint32_t kept;  // bit k: element k is
  int begin;      // the first, counted from the warp's
};

// `ranks`: in each lane, the entries of the warp before its word. The whole warp calls it.
__device__ inline Four FourOf(uint32_t bits, uint32_t ranks, int vector) {
  const unsigned lane = threadIdx.x % kWarpThreads;
  const int word = vector * 4 + static_cast<int>(lane) / kNibblesOfWord;
  const unsigned at = lane % kNibblesOfWord * 4;
  const uint32_t word_bits = __shfl_sync(kWholeWarp, bits, word);
  const uint32_t rank = __shfl_sync(kWholeWarp, ranks, word);
  return {rank + __popc(BitsBelow(word_bits, at)), word_bits >> at & 15,
          word * 32 + static_cast<int>(at)};
}

// *largest, unless that is null, becomes at least each thread's magnitude. Whole warps call it.
__device__ inline void RaiseTo(uint32_t magnitude, uint32_t* largest) {
  if (largest == nullptr) return;
  magnitude = WarpReduce<Greatest>(magnitude);
  if (threadIdx.x % kWarpThreads == 0 && magnitude > 0) atomicMax(largest, magnitude);
}

// A block per tile. A warp gathers the values of its 1024 elements in shared memory, from where
// they go to their place side by side.
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

template <typename T>
Error SubmitOf(cudaStream_t stream, const TensorView& x, const RankedBits& kept,
               const EntryList& list) {
  const int64_t n = x.elements();
  const dim3 blocks = BlocksFor(NumTiles(n), 1);
  if (list.values_dtype == DType::kF32) {
    return Launch(stream, blocks, dim3(kTileWords), EntryListKernel<T, float>, x.data, n, kept,
                  list.values, list.indices, list.largest, list.largest_of_all);
  }
  return Launch(stream, blocks, dim3(kTileWords), EntryListKernel<T, uint16_t>, x.data, n, kept,
                list.values, list.indices, list.largest, list.largest_of_all);
}

}  // namespace

Error SubmitEntryList(cudaStream_t stream, const TensorView& x, const RankedBits& kept,
                      const EntryList& list) {
  return x.dtype == DType::kF32 ? SubmitOf<float>(stream, x, kept, list)
                                : SubmitOf<uint16_t>(stream, x, kept, list);
}

}  // namespace thinwire
