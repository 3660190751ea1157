#include <algorithm>

#include "compress/cuda/bit_writers.cuh"
#include "compress/cuda/bitmap.cuh"
#include "compress/cuda/index_coding.h"
#include "compress/cuda/prefix_sums.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kPlanThreads = 1024;
constexpr int kRiceCandidates = 5;
constexpr int kWarps = kTileWords / static_cast<int>(kWarpThreads);

// Candidates of Rice's k, from `least` to `most`, for `count` > 0 entries with indices below
// `size`. 63 less the zeros above the highest set bit is the floor of the logarithm.
struct RiceBits {
  __device__ RiceBits(uint64_t size, uint64_t count) {
    const uint32_t log2 = 63 - __clzll(static_cast<long long>(size / count));
    most = min(log2 + 1, kMaxRiceBits);
    least = most >= kRiceCandidates - 1 ? most - (kRiceCandidates - 1) : 0;
  }
  uint32_t least, most;
};

__device__ inline uint64_t BytesOfBits(uint64_t bits) { return (bits + 7) / 8; }

// Moves the bits of kept elements, all of them supported, to their ranks among the supported. A
// thread reads a word. `listed` is zero before.
__global__ void SqueezeKernel(const uint32_t* kept, RankedBits support, int64_t elements,
                              uint32_t* listed) {
  const int64_t num_words = NumWords(elements);
  const TileWord own = LoadTileWord(support.words, num_words, support.offsets);
  const int64_t word = int64_t{blockIdx.x} * kTileWords + threadIdx.x;
  if (word >= num_words) return;
  FieldWriter ranks(listed, own.before);
  const uint32_t bits = kept[word];
  // `left &= left - 1` clears the lowest set bit, and `left & (~left + 1)` is that bit alone.
  uint32_t squeezed = 0, bit = 1;
  for (uint32_t left = own.bits; left != 0; left &= left - 1, bit <<= 1) {
    if ((bits & left & (~left + 1)) != 0) squeezed |= bit;
  }
  ranks.Append(squeezed, 32);
  ranks.Finish();
}

// Returns one more than the last set bit before the block's tile; bits.offsets says that there is
// one. The whole block calls it.
__device__ inline uint32_t NextOfTilesBefore(const RankedBits& bits, int64_t num_words) {
  // It mostly lies in the tile before. Otherwise a binary search over the counts before tiles,
  // which never fall, finds the last tile that has fewer before it.
  const uint64_t before = bits.offsets[blockIdx.x];
  int64_t tile = int64_t{blockIdx.x} - 1;
  if (bits.offsets[tile] == before) {
    int64_t low = 0;
    while (tile - low > 1) {
      const int64_t middle = (low + tile) / 2;
      (bits.offsets[middle] < before ? low : tile) = middle;
    }
    tile = low;
  }
  const int64_t word = tile * kTileWords + threadIdx.x;
  const uint32_t own = word < num_words ? bits.words[word] : 0;
  // 32 less the zeros above the highest set bit is one more than its number.
  const uint32_t next = own == 0 ? 0 : static_cast<uint32_t>(word * 32) + (32 - __clz(own));
  return BlockReduce<Greatest>(next);
}

// Entries of this thread's word of the block's tile.
struct WordOfEntries {
  uint32_t bits, begin;  // the word; index of its first bit
  uint32_t next;         // one more than the last entry's before the word; 0 before the first

  // Calls visit(index, gap) for each entry, where gap is the number of indices between it and the
  // entry before.
  template <typename Visit>
  __device__ void ForEach(Visit visit) const {
    uint32_t least = next;
    // `left &= left - 1` clears the lowest set bit: the loop visits them from the lowest up.
    for (uint32_t left = bits; left != 0; left &= left - 1) {
      const uint32_t index = begin + static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1;
      visit(index, index - least);
      least = index + 1;
    }
  }
};

// Returns the entries of this thread's word. The whole block calls it, for a tile that has entries.
__device__ inline WordOfEntries LoadWordOfEntries(const RankedBits& bits, int64_t num_words) {
  __shared__ uint32_t next_of_warps[kWarps];
  const unsigned lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  const int64_t word = int64_t{blockIdx.x} * kTileWords + threadIdx.x;
  WordOfEntries own;
  own.bits = word < num_words ? bits.words[word] : 0;
  own.begin = static_cast<uint32_t>(word * 32);
  own.next = bits.offsets[blockIdx.x] == 0 ? 0 : NextOfTilesBefore(bits, num_words);
  const uint32_t next_behind = own.begin + (32 - __clz(own.bits));
  // A vote has bit i set if lane i's word has entries. The highest set bit below this lane's says
  // which word has the entry before. The warp's last such word says it for the warps behind.
  const uint32_t votes = __ballot_sync(kWholeWarp, own.bits != 0);
  const uint32_t lower = BitsBelow(votes, lane);
  const uint32_t of_lower =
      __shfl_sync(kWholeWarp, next_behind, static_cast<int>(31 - __clz(lower | 1)));
  if (votes == 0 ? lane == 0 : lane == static_cast<unsigned>(31 - __clz(votes))) {
    next_of_warps[warp] = votes == 0 ? 0 : next_behind;
  }
  __syncthreads();
  for (unsigned i = 0; i < warp; ++i) own.next = max(own.next, next_of_warps[i]);
  if (lower != 0) own.next = of_lower;
  return own;
}

// Sets sums[j * tiles + t] to the sum of tile t's quotients with j bits more than the least.
__global__ void SumQuotientsKernel(RankedBits bits, int64_t size, int64_t tiles, uint32_t* sums) {
  __shared__ uint32_t of_tile[kRiceCandidates];
  const uint64_t count = bits.offsets[tiles];
  if (count == 0) return;
  if (threadIdx.x < kRiceCandidates) of_tile[threadIdx.x] = 0;
  __syncthreads();
  if (bits.offsets[blockIdx.x] != bits.offsets[blockIdx.x + 1]) {
    const uint32_t least = RiceBits(size, count).least;
    uint32_t own[kRiceCandidates] = {};
    LoadWordOfEntries(bits, NumWords(size)).ForEach([&](uint32_t, uint32_t gap) {
#pragma unroll
      for (int k = 0; k < kRiceCandidates; ++k) own[k] += gap >> least >> k;
    });
#pragma unroll
    for (int k = 0; k < kRiceCandidates; ++k) {
      const uint32_t sum = WarpReduce<Sum>(own[k]);
      if (threadIdx.x % kWarpThreads == 0) atomicAdd(&of_tile[k], sum);
    }
    __syncthreads();
  }
  if (threadIdx.x < kRiceCandidates) sums[threadIdx.x * tiles + blockIdx.x] = of_tile[threadIdx.x];
}

// Makes the CPU twin's choice: the fewest bytes, the lower number in a tie, for Rice the lowest k.
// `quotients` are sums per candidate.
__device__ void Choose(const uint64_t* quotients, uint64_t size, uint32_t packed_bits,
                       uint64_t count, EntriesPlan* plan) {
  EntriesPlan best = *plan;
  best.count = static_cast<uint32_t>(count);
  best.coding = static_cast<uint32_t>(IndexCoding::kBitmap);
  best.rice_bits = 0;
  best.fields_bytes = 0;
  best.flags_bytes = BytesOfBits(size);
  const uint64_t packed = BytesOfBits(packed_bits * count);
  if (packed < best.flags_bytes) {
    best.coding = static_cast<uint32_t>(IndexCoding::kPacked);
    best.fields_bytes = packed;
    best.flags_bytes = 0;
  }
  if (count > 0) {
    const RiceBits rice(size, count);
    for (uint32_t k = rice.least; k <= rice.most; ++k) {
      const uint64_t fields = BytesOfBits(k * count);
      const uint64_t flags = BytesOfBits(quotients[k - rice.least] + count);
      if (fields + flags >= best.fields_bytes + best.flags_bytes) continue;
      best.coding = static_cast<uint32_t>(IndexCoding::kRice);
      best.rice_bits = k;
      best.fields_bytes = fields;
      best.flags_bytes = flags;
    }
  }
  *plan = best;
}

// Chooses the coding, with one block. For Rice it sets `zeros` to the sum of quotients before each
// tile.
__global__ void __launch_bounds__(kPlanThreads)
    PlanKernel(const uint64_t* count, int64_t size, uint32_t packed_bits, int64_t tiles,
               const uint32_t* sums, uint64_t* zeros, EntriesPlan* plan) {
  __shared__ uint64_t quotients[kRiceCandidates];
  const uint64_t n = *count;
  for (int k = 0; n > 0 && k < kRiceCandidates; ++k) {
    uint64_t sum = 0;
#pragma unroll 8
    for (int64_t tile = threadIdx.x; tile < tiles; tile += kPlanThreads) {
      sum += sums[k * tiles + tile];
    }
    sum = BlockReduce<Sum>(sum);
    if (threadIdx.x == 0) quotients[k] = sum;
  }
  if (threadIdx.x == 0) Choose(quotients, size, packed_bits, n, plan);
  __syncthreads();
  if (plan->coding != static_cast<uint32_t>(IndexCoding::kRice)) return;
  const uint32_t* const chosen = sums + (plan->rice_bits - RiceBits(size, n).least) * tiles;
#pragma unroll 8
  for (int64_t tile = threadIdx.x; tile < tiles; tile += kPlanThreads) zeros[tile] = chosen[tile];
  __syncthreads();
  BlockPrefixSums(zeros, tiles);
}

// Writes indices, with a block per tile of the bitmap: packed indices, or Rice's remainders, as
// fields, and Rice's quotients in unary. Entry i's one is preceded by i others and by the zeros of
// quotients 0 to i. `fields` and `flags` are zero before.
__global__ void WriteIndicesKernel(const EntriesPlan* plan, RankedBits bits, int64_t size,
                                   uint32_t packed_bits, const uint64_t* zeros_before_tiles,
                                   uint32_t* fields, uint32_t* flags) {
  const auto coding = static_cast<IndexCoding>(plan->coding);
  if (coding == IndexCoding::kBitmap) return;
  const uint64_t first = bits.offsets[blockIdx.x];
  if (first == bits.offsets[blockIdx.x + 1]) return;
  const WordOfEntries own = LoadWordOfEntries(bits, NumWords(size));
  uint32_t total;
  uint64_t rank = first + BlockExclusiveSum(static_cast<uint32_t>(__popc(own.bits)), &total);
  if (coding == IndexCoding::kPacked) {
    FieldWriter indices(fields, rank * packed_bits);
    own.ForEach([&](uint32_t index, uint32_t) { indices.Append(index, packed_bits); });
    indices.Finish();
    return;
  }
  const auto width = static_cast<uint32_t>(plan->rice_bits);
  uint32_t quotients = 0;
  own.ForEach([&](uint32_t, uint32_t gap) { quotients += gap >> width; });
  uint64_t zeros = zeros_before_tiles[blockIdx.x] + BlockExclusiveSum(quotients, &total);
  FieldWriter remainders(fields, rank * width);
  BitCollector ones(flags);
  own.ForEach([&](uint32_t, uint32_t gap) {
    remainders.Append(gap, width);
    zeros += gap >> width;
    ones.Set(zeros + rank++);
  });
  remainders.Finish();
  ones.Finish();
}

}  // namespace

Error IndexBytes::Reserve(int64_t most, int64_t size, bool are_ranks) {
  size_ = size;
  // The smallest coding is chosen, so its bytes exceed neither the bitmap's nor the packed
  // indices', except for what fills the last byte.
  const uint64_t packed = PackedIndexBits(size) * static_cast<uint64_t>(most);
  const uint64_t bits = std::min(static_cast<uint64_t>(size), packed);
  bytes_ = static_cast<size_t>(bits / 32 + 2) * 4;
  RETURN_ERROR(fields_.Reserve(bytes_));
  RETURN_ERROR(flags_.Reserve(bytes_));
  RETURN_ERROR(sums_.Reserve(4 * kRiceCandidates * (NumTiles(size) + 1)));
  RETURN_ERROR(zeros_.Reserve(TileOffsetsBytes(size)));
  return are_ranks ? listed_.Reserve(BitmapBytes(size) + 8) : Error{};
}

Error IndexBytes::SubmitRanks(int64_t elements, const RankedBits& support) {
  uint32_t* const listed = listed_.as<uint32_t>();
  RETURN_ERROR(device_->SubmitZeros(listed, BitmapBytes(size_) + 8));
  RETURN_ERROR(Launch(device_, BlocksFor(NumTiles(elements), 1), dim3(kTileWords), SqueezeKernel,
                      bits_.words, support, elements, listed));
  RETURN_ERROR(ranked_.Submit(listed, size_));
  bits_ = ranked_.bits();
  return Error{};
}

Error IndexBytes::Submit(const RankedBits& kept, int64_t elements, const RankedBits& support,
                         EntriesPlan* plan) {
  bits_ = kept;
  if (support.words != nullptr) RETURN_ERROR(SubmitRanks(elements, support));
  const int64_t tiles = NumTiles(size_);
  const uint32_t packed_bits = PackedIndexBits(size_);
  const dim3 blocks = BlocksFor(tiles, 1), threads(kTileWords);
  RETURN_ERROR(device_->SubmitZeros(fields_.as<void>(), bytes_));
  RETURN_ERROR(device_->SubmitZeros(flags_.as<void>(), bytes_));
  RETURN_ERROR(Launch(device_, blocks, threads, SumQuotientsKernel, bits_, size_, tiles,
                      sums_.as<uint32_t>()));
  RETURN_ERROR(Launch(device_, dim3(1), dim3(kPlanThreads), PlanKernel, bits_.offsets + tiles,
                      size_, packed_bits, tiles, sums_.as<uint32_t>(), zeros_.as<uint64_t>(),
                      plan));
  return Launch(device_, blocks, threads, WriteIndicesKernel, plan, bits_, size_, packed_bits,
                zeros_.as<uint64_t>(), fields_.as<uint32_t>(), flags_.as<uint32_t>());
}

}  // namespace thinwire
