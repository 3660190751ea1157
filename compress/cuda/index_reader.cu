#include "compress/cuda/bit_writers.cuh"
#include "compress/cuda/bitmap.cuh"
#include "compress/cuda/entry_list.h"
#include "compress/cuda/index_reader.h"
#include "compress/cuda/payload.h"
#include "compress/cuda/prefix_sums.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

// Returns field i of `width` <= 32 bits. The word behind the last field's must be readable.
__device__ inline uint64_t FieldAt(const uint32_t* fields, int64_t i, uint32_t width) {
  const int64_t bit = i * width;
  const uint64_t words = fields[bit / 32] | uint64_t{fields[bit / 32 + 1]} << 32;
  return (words >> (bit % 32)) & ((uint64_t{1} << width) - 1);
}

// Reports a fault if the number found is not the number wanted.
__global__ void CheckCountKernel(const uint64_t* count, uint64_t want, uint32_t* fault) {
  if (threadIdx.x == 0 && *count != want) *fault = 1;
}

// Reads packed indices and reports a fault unless they ascend and are below the size.
__global__ void ReadPackedKernel(const uint32_t* fields, uint32_t width, int64_t count,
                                 uint64_t size, uint32_t* listed, uint32_t* fault) {
  const int64_t first = (int64_t{blockIdx.x} * kEntryThreads + threadIdx.x) * int64_t{kEntriesEach};
  if (first >= count) return;
  uint64_t least = first == 0 ? 0 : FieldAt(fields, first - 1, width) + 1;
  bool ascends = true;
  BitCollector bits(listed);
  for (int j = 0; j < kEntriesEach && first + j < count; ++j) {
    const uint64_t index = FieldAt(fields, first + j, width);
    ascends &= index >= least && index < size;
    if (index < size) bits.Set(index);
    least = index + 1;
  }
  bits.Finish();
  if (!ascends) *fault = 1;
}

// Sets quotients[i] to the number of zeros before the one of entry i.
__global__ void ListQuotientsKernel(const uint32_t* flags, const uint64_t* offsets, int64_t bits,
                                    uint64_t count, uint64_t* quotients) {
  const TileWord own = LoadTileWord(flags, NumWords(bits), offsets);
  const auto nothing = [](int64_t, bool, uint64_t) { return 0; };
  VisitWords(own, bits, nothing, [&](int64_t i, bool is_set, uint64_t rank, int) {
    if (is_set && rank < count) quotients[rank] = static_cast<uint64_t>(i) - rank;
  });
}

// Sums the remainders of each tile of entries.
__global__ void SumRemaindersKernel(const uint32_t* fields, uint32_t width, int64_t count,
                                    uint64_t* sums) {
  uint64_t sum = 0;
  for (int j = 0; j < kEntriesEach; ++j) {
    const int64_t i = int64_t{blockIdx.x} * kEntryTile + j * kEntryThreads + threadIdx.x;
    if (i < count) sum += FieldAt(fields, i, width);
  }
  sum = BlockReduce<Sum>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Reads Rice's indices, which ascend by construction. *num_flags is the number of quotients found.
__global__ void ReadRiceKernel(const uint32_t* fields, uint32_t width, const uint64_t* quotients,
                               const uint64_t* num_flags, const uint64_t* sums, int64_t count,
                               uint64_t size, uint32_t* listed, uint32_t* fault) {
  if (*num_flags != static_cast<uint64_t>(count)) return;  // a fault, found elsewhere
  const int64_t first = (int64_t{blockIdx.x} * kEntryThreads + threadIdx.x) * int64_t{kEntriesEach};
  uint64_t remainders[kEntriesEach], sum = 0, total;
  for (int j = 0; j < kEntriesEach; ++j) {
    remainders[j] = first + j < count ? FieldAt(fields, first + j, width) : 0;
    sum += remainders[j];
  }
  uint64_t before = sums[blockIdx.x] + BlockExclusiveSum(sum, &total);
  bool inside = true;
  BitCollector bits(listed);
  for (int j = 0; j < kEntriesEach && first + j < count; ++j) {
    const int64_t i = first + j;
    before += remainders[j];
    const uint64_t index = (quotients[i] << width) + before + static_cast<uint64_t>(i);
    inside &= index < size;
    if (index < size) bits.Set(index);
  }
  bits.Finish();
  if (!inside) *fault = 1;
}

// Moves bits of indices, which are ranks of supported elements, to the elements. A thread makes a
// word.
__global__ void SpreadKernel(const uint32_t* listed, RankedBits support, int64_t elements,
                             uint32_t* bits) {
  const int64_t num_words = NumWords(elements);
  const TileWord own = LoadTileWord(support.words, num_words, support.offsets);
  const int64_t word = int64_t{blockIdx.x} * kTileWords + threadIdx.x;
  if (word >= num_words) return;
  uint32_t spread = 0;
  if (own.bits != 0) {
    const int64_t before = static_cast<int64_t>(own.before);
    // Bit j of `next` belongs to the j-th set bit of the word. `left &= left - 1` clears the lowest
    // set bit, and `left & (~left + 1)` is that bit alone.
    uint32_t next = BitsFrom(listed, before, before + __popc(own.bits));
    for (uint32_t left = own.bits; left != 0; left &= left - 1, next >>= 1) {
      if ((next & 1) != 0) spread |= left & (~left + 1);
    }
  }
  bits[word] = spread;
}

}  // namespace

// Returns the bytes of packed indices, or of Rice's remainders; the flags are behind them.
size_t GpuIndexReader::FieldsBytes() const {
  switch (indices_.plan.coding) {
    case IndexCoding::kBitmap:
      return 0;
    case IndexCoding::kPacked:
      return indices_.plan.bytes;
    case IndexCoding::kRice:
      return static_cast<size_t>((uint64_t{indices_.plan.rice_bits} * indices_.count + 7) / 8);
  }
  return 0;
}

Error GpuIndexReader::SubmitCopy(const EntryIndices& indices) {
  indices_ = indices;
  const size_t fields = FieldsBytes();
  RETURN_ERROR(indices.bytes.SubmitWords(device_, 0, fields, &fields_));
  return indices.bytes.SubmitWords(device_, fields, indices.plan.bytes - fields, &flags_);
}

Error GpuIndexReader::SubmitPacked(uint32_t* fault) {
  RETURN_ERROR(listed_.ReserveZeros(BitmapBytes(indices_.size) + 8));
  return Launch(device_, BlocksFor(indices_.count, kEntryTile), dim3(kEntryThreads),
                ReadPackedKernel, fields_.as<uint32_t>(), PackedIndexBits(indices_.size),
                indices_.count, static_cast<uint64_t>(indices_.size), listed_.as<uint32_t>(),
                fault);
}

Error GpuIndexReader::SubmitRice(uint32_t* fault) {
  const int64_t count = indices_.count, tiles = NumEntryTiles(count);
  const uint32_t width = indices_.plan.rice_bits;
  const int64_t num_flags = 8 * static_cast<int64_t>(indices_.plan.bytes - FieldsBytes());
  RETURN_ERROR(quotients_.Reserve(8 * (count + 1)));
  RETURN_ERROR(sums_.Reserve(8 * (tiles + 1)));
  RETURN_ERROR(listed_.ReserveZeros(BitmapBytes(indices_.size) + 8));

  const dim3 threads(kEntryThreads);
  RETURN_ERROR(ranked_flags_.Submit(flags_.as<uint32_t>(), num_flags));
  const uint64_t* const found = ranked_flags_.count();
  RETURN_ERROR(Launch(device_, dim3(1), dim3(32), CheckCountKernel, found,
                      static_cast<uint64_t>(count), fault));
  RETURN_ERROR(Launch(device_, BlocksFor(NumTiles(num_flags), 1), dim3(kTileWords),
                      ListQuotientsKernel, flags_.as<uint32_t>(), ranked_flags_.bits().offsets,
                      num_flags, static_cast<uint64_t>(count), quotients_.as<uint64_t>()));
  RETURN_ERROR(Launch(device_, BlocksFor(tiles, 1), threads, SumRemaindersKernel,
                      fields_.as<uint32_t>(), width, count, sums_.as<uint64_t>()));
  RETURN_ERROR(SubmitPrefixSums(device_, sums_.as<uint64_t>(), tiles));
  return Launch(device_, BlocksFor(tiles, 1), threads, ReadRiceKernel, fields_.as<uint32_t>(),
                width, quotients_.as<uint64_t>(), found, sums_.as<uint64_t>(), count,
                static_cast<uint64_t>(indices_.size), listed_.as<uint32_t>(), fault);
}

Error GpuIndexReader::Submit(int64_t elements, const RankedBits& support, uint32_t* fault) {
  const IndexCoding coding = indices_.plan.coding;
  if (coding == IndexCoding::kPacked) RETURN_ERROR(SubmitPacked(fault));
  if (coding == IndexCoding::kRice) RETURN_ERROR(SubmitRice(fault));
  const bool is_bitmap = coding == IndexCoding::kBitmap;
  const uint32_t* words = is_bitmap ? flags_.as<uint32_t>() : listed_.as<uint32_t>();
  if (support.words != nullptr) {
    RETURN_ERROR(bits_.Reserve(BitmapBytes(elements) + 8));
    RETURN_ERROR(Launch(device_, BlocksFor(NumTiles(elements), 1), dim3(kTileWords), SpreadKernel,
                        words, support, elements, bits_.as<uint32_t>()));
    words = bits_.as<uint32_t>();
  }
  RETURN_ERROR(result_.Submit(words, elements));
  return Launch(device_, dim3(1), dim3(32), CheckCountKernel, result_.count(),
                static_cast<uint64_t>(indices_.count), fault);
}

}  // namespace thinwire
