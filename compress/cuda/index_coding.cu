#include <algorithm>

#include "compress/cuda/entry_tiles.cuh"
#include "compress/cuda/index_coding.h"
#include "compress/cuda/prefix_sums.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kPlanThreads = 512;
constexpr int kRiceCandidates = 5;

// Rice's k is tried from `least` to `most`, for `count` > 0 entries with indices below `size`.
// 63 less the zeros above the highest set bit is the floor of the logarithm.
struct RiceBits {
  __device__ RiceBits(uint64_t size, uint64_t count) {
    const uint32_t log2 = 63 - __clzll(static_cast<long long>(size / count));
    most = min(log2 + 1, kMaxRiceBits);
    least = most >= kRiceCandidates - 1 ? most - (kRiceCandidates - 1) : 0;
  }
  uint32_t least, most;
};

// How many indices lie between entry i and the one before.
__device__ inline uint32_t GapOf(const uint32_t* entries, int64_t i) {
  return entries[i] - (i == 0 ? 0 : entries[i - 1] + 1);
}

__device__ inline uint64_t BytesOfBits(uint64_t bits) { return (bits + 7) / 8; }

// sums[j * stride + t]: the quotients of tile t with j bits more than the least.
__global__ void SumQuotientsKernel(const uint32_t* entries, const uint64_t* count, int64_t size,
                                   int64_t stride, uint64_t* sums) {
  const int64_t n = static_cast<int64_t>(*count);
  for (int64_t tile = blockIdx.x; tile * kEntryTile < n; tile += gridDim.x) {
    const RiceBits rice(size, n);
    uint64_t own[kRiceCandidates] = {};
    for (int j = 0; j < kEntriesEach; ++j) {
      const int64_t i = tile * kEntryTile + j * kEntryThreads + threadIdx.x;
      const uint32_t gap = i < n ? GapOf(entries, i) >> rice.least : 0;
      for (int k = 0; k < kRiceCandidates; ++k) own[k] += gap >> k;
    }
    for (int k = 0; k < kRiceCandidates; ++k) {
      const uint64_t sum = BlockReduce<Sum>(own[k]);
      if (threadIdx.x == 0) sums[k * stride + tile] = sum;
    }
  }
}

// The CPU twin's choice: the fewest bytes, the lower number in a tie, of Rice's the lowest k.
// `quotients` are summed per candidate.
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

// One block. Leaves in the first column of `sums` the quotients before each tile for Rice's k.
__global__ void __launch_bounds__(kPlanThreads)
    PlanKernel(const uint64_t* count, int64_t size, uint32_t packed_bits, int64_t stride,
               uint64_t* sums, EntriesPlan* plan) {
  __shared__ uint64_t quotients[kRiceCandidates];
  const uint64_t n = *count;
  const int64_t tiles = NumEntryTiles(static_cast<int64_t>(n));
  for (int k = 0; k < kRiceCandidates; ++k) {
    uint64_t sum = 0;
    for (int64_t tile = threadIdx.x; tile < tiles; tile += kPlanThreads) {
      sum += sums[k * stride + tile];
    }
    sum = BlockReduce<Sum>(sum);
    if (threadIdx.x == 0) quotients[k] = sum;
  }
  if (threadIdx.x == 0) Choose(quotients, size, packed_bits, n, plan);
  __syncthreads();
  if (plan->coding != static_cast<uint32_t>(IndexCoding::kRice)) return;
  const uint32_t least = RiceBits(size, n).least;
  const uint64_t* const chosen = sums + (plan->rice_bits - least) * stride;
  for (int64_t tile = threadIdx.x; tile < tiles; tile += kPlanThreads) sums[tile] = chosen[tile];
  __syncthreads();
  BlockPrefixSums(sums, tiles);
}

// The values of a tile of entries. Readers of every 32nd, 16th, ... meet no bank twice.
class TileValues {
 public:
  // The whole block calls it, and again for the next tile.
  template <typename ValueOf>
  __device__ TileValues(uint32_t (&memory)[kEntryTile + kEntryTile / 32], int64_t tile,
                        int64_t entries, ValueOf value_of)
      : values_(memory),
        count_(static_cast<int>(min(entries - tile * kEntryTile, int64_t{kEntryTile}))) {
    __syncthreads();
    for (int i = threadIdx.x; i < count_; i += kEntryThreads) {
      values_[i + i / 32] = value_of(tile * kEntryTile + i);
    }
    __syncthreads();
  }
  __device__ int count() const { return count_; }
  __device__ uint32_t operator[](int i) const { return values_[i + i / 32]; }

 private:
  uint32_t* values_;
  int count_;
};

// The lowest `width` bits of each value without gaps, the first value in the lowest bits. A whole
// tile fills whole words, from fields[0] on.
__device__ void WriteFields(const TileValues& values, uint32_t width, uint32_t* fields) {
  const int bits = static_cast<int>(width), words = (values.count() * bits + 31) / 32;
  const uint32_t mask = width < 32 ? (1u << width) - 1 : ~0u;
  for (int word = threadIdx.x; word < words; word += kEntryThreads) {
    const int begin = word * 32;
    uint32_t filled = 0;
    for (int i = begin / bits; i < values.count() && i * bits < begin + 32; ++i) {
      const int at = i * bits - begin;  // -31 to 31
      const uint32_t value = values[i] & mask;
      filled |= at >= 0 ? value << at : value >> -at;
    }
    fields[word] = filled;
  }
}

// Rice's quotients in unary: entry i's one is behind i others and the zeros of quotients 0 to i,
// of which `zeros` are before the tile, which begins with entry `first`.
__device__ void WriteQuotients(const TileValues& gaps, uint32_t rice_bits, int64_t first,
                               uint64_t zeros, uint32_t* flags) {
  const int begin = static_cast<int>(threadIdx.x) * kEntriesEach;
  uint32_t quotients[kEntriesEach];
  uint64_t sum = 0, total;
  for (int j = 0; j < kEntriesEach; ++j) {
    quotients[j] = begin + j < gaps.count() ? gaps[begin + j] >> rice_bits : 0;
    sum += quotients[j];
  }
  zeros += BlockExclusiveSum(sum, &total);
  BitCollector bits(flags);
  for (int j = 0; j < kEntriesEach && begin + j < gaps.count(); ++j) {
    zeros += quotients[j];
    bits.Set(zeros + static_cast<uint64_t>(first + begin + j));
  }
  bits.Finish();
}

__device__ void WriteBitmap(const uint32_t* entries, int64_t count, uint32_t* flags) {
  for (int64_t tile = blockIdx.x; tile * kEntryTile < count; tile += gridDim.x) {
    const int64_t first = tile * kEntryTile + int64_t{threadIdx.x} * kEntriesEach;
    BitCollector bits(flags);
    for (int j = 0; j < kEntriesEach && first + j < count; ++j) bits.Set(entries[first + j]);
    bits.Finish();
  }
}

__global__ void WriteIndicesKernel(const EntriesPlan* plan, const uint32_t* entries,
                                   uint32_t packed_bits, bool has_bitmap,
                                   const uint64_t* before_tiles, uint32_t* fields,
                                   uint32_t* flags) {
  __shared__ uint32_t memory[kEntryTile + kEntryTile / 32];
  const EntriesPlan p = *plan;
  const int64_t count = p.count;
  const IndexCoding coding = static_cast<IndexCoding>(p.coding);
  if (coding == IndexCoding::kBitmap) {
    if (!has_bitmap) WriteBitmap(entries, count, flags);
    return;
  }
  const bool is_rice = coding == IndexCoding::kRice;
  const uint32_t width = is_rice ? static_cast<uint32_t>(p.rice_bits) : packed_bits;
  for (int64_t tile = blockIdx.x; tile * kEntryTile < count; tile += gridDim.x) {
    const TileValues values(memory, tile, count,
                            [&](int64_t i) { return is_rice ? GapOf(entries, i) : entries[i]; });
    if (width > 0) WriteFields(values, width, fields + tile * (kEntryTile / 32) * width);
    if (!is_rice) continue;
    WriteQuotients(values, width, tile * kEntryTile, before_tiles[tile], flags);
  }
}

}  // namespace

Error IndexBytes::Reserve(int64_t most, int64_t size, const uint32_t* bitmap) {
  most_ = most;
  size_ = size;
  bitmap_ = bitmap;
  // The smallest coding is chosen, so neither the bitmap nor packed indices are exceeded, but for
  // what fills the last byte.
  const uint64_t packed = PackedIndexBits(size) * static_cast<uint64_t>(most);
  const uint64_t bits = std::min(static_cast<uint64_t>(size), packed);
  bytes_ = static_cast<size_t>(bits / 32 + 2) * 4;
  RETURN_ERROR(fields_.Reserve(bytes_));
  RETURN_ERROR(flags_.Reserve(bytes_));
  return sums_.Reserve(8 * kRiceCandidates * (NumEntryTiles(most) + 1));
}

Error IndexBytes::Submit(cudaStream_t stream, const uint32_t* entries, const uint64_t* count,
                         EntriesPlan* plan) {
  const int64_t tiles = NumEntryTiles(most_);
  const uint32_t packed_bits = PackedIndexBits(size_);
  const dim3 blocks = BlocksFor(tiles, 1, 8 * device_->multiprocessors());
  uint64_t* const sums = sums_.as<uint64_t>();
  CUDA_RETURN_IF_ERROR(cudaMemsetAsync(flags_.as<void>(), 0, bytes_, stream));
  RETURN_ERROR(Launch(stream, blocks, dim3(kEntryThreads), SumQuotientsKernel, entries, count,
                      size_, tiles + 1, sums));
  RETURN_ERROR(Launch(stream, dim3(1), dim3(kPlanThreads), PlanKernel, count, size_, packed_bits,
                      tiles + 1, sums, plan));
  return Launch(stream, blocks, dim3(kEntryThreads), WriteIndicesKernel, plan, entries, packed_bits,
                bitmap_ != nullptr, sums, fields_.as<uint32_t>(), flags_.as<uint32_t>());
}

}  // namespace thinwire
