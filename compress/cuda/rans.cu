#include "compress/cuda/prefix_sums.h"
#include "compress/cuda/rans.h"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/scan.cuh"

namespace thinwire {
namespace {

constexpr int kLanes = static_cast<int>(kStates);
static_assert(kStates == kWarpThreads, "a thread has a state");
constexpr int kWarps = 4;  // warps of a block; each codes a string
constexpr int kThreads = kWarps * kLanes;
constexpr int kRowsAhead = 8;  // rows whose bytes an encoder loads together
constexpr int kPackBlocks = 8, kPackThreads = 256;

// Table entry of a byte, which replaces the division x / f by a product. For all x < 2^31, x / f is
// x times `reciprocal`, shifted down by 31 + s bits. Here reciprocal = ceil(2^(31 + s) / f), and
// 2^s is the least power of two not below f (Alverson, ARITH 1991).
struct EncoderEntry {
  uint32_t reciprocal = 0;
  uint32_t packed = 0;  // f (13 bits), the sum of the frequencies before it (13 bits), s (4 bits)
};
constexpr int kFieldBits = 13;
constexpr uint32_t kFieldMask = (1u << kFieldBits) - 1;
constexpr int kFullBits = 31 - kScaleBits;  // as in compress/entropy/rans.cc

// Table entry for each value of a state's lower 12 bits, as in compress/entropy/rans_decode.cc.
using DecoderEntry = uint32_t;

__device__ unsigned Lane() { return threadIdx.x % kLanes; }

// Encoder of this warp's string. Words are written before `word_`, the last one first.
class Encoder {
 public:
  __device__ explicit Encoder(uint16_t* end) : word_(end) {}

  // Adds a byte, given its entry, to the state of each lane that has one; the whole warp calls it.
  // A vote tells which states are full, and the number of full lower lanes where each writes its
  // word.
  __device__ void Step(bool has_byte, const EncoderEntry& entry) {
    const uint32_t f = entry.packed & kFieldMask;
    const bool is_full = has_byte && (x_ >> kFullBits) >= f;
    const unsigned full = __ballot_sync(kWholeWarp, is_full);
    if (is_full) {
      const unsigned below = full & ((1u << Lane()) - 1);
      word_[-1 - __popc(below)] = static_cast<uint16_t>(x_);
      x_ >>= kWordBits;
    }
    word_ -= __popc(full);
    if (!has_byte) return;
    const uint32_t start = entry.packed >> kFieldBits & kFieldMask;
    const uint32_t shift = 31 + (entry.packed >> (2 * kFieldBits));
    const auto quotient = static_cast<uint32_t>((uint64_t{x_} * entry.reciprocal) >> shift);
    x_ = (quotient << kScaleBits) + (x_ - quotient * f) + start;
  }

  // Writes the states before the words and returns where they begin.
  __device__ uint16_t* Finish() {
    word_ -= 2 * kLanes;
    word_[2 * Lane()] = static_cast<uint16_t>(x_);
    word_[2 * Lane() + 1] = static_cast<uint16_t>(x_ >> kWordBits);
    return word_;
  }

 private:
  uint32_t x_ = kLeastState;
  uint16_t* word_;
};

// Codes strings, a warp each. With kTables > 1, `sums` choose the table. String p ends where room p
// of `room_bytes` does.
template <int kTables>
__global__ void EncodeKernel(const uint8_t* bytes, RansStrings strings, const uint8_t* sums,
                             const EncoderEntry* entries, uint8_t* room, int64_t room_bytes,
                             uint64_t* lengths) {
  __shared__ uint2 table[kTables * kSymbols];
  for (int i = threadIdx.x; i < kTables * kSymbols; i += kThreads) {
    table[i] = uint2{entries[i].reciprocal, entries[i].packed};
  }
  __syncthreads();
  const int64_t p = int64_t{blockIdx.x} * kWarps + threadIdx.x / kLanes;
  if (p >= strings.count) return;
  const int64_t begin = strings.begin(p), n = strings.begin(p + 1) - begin;
  const uint8_t* const own = bytes + begin + Lane();
  const uint8_t* const own_sums = kTables == 1 ? nullptr : sums + begin + Lane();
  auto* const end = reinterpret_cast<uint16_t*>(room + (p + 1) * room_bytes);
  Encoder encoder(end);
  const auto place_at = [&](int64_t row) {
    return kTables == 1 ? own[row] : own_sums[row] * kSymbols + own[row];
  };
  const auto step = [&](bool has_byte, int place) {
    const uint2 found = table[place];
    encoder.Step(has_byte, {found.x, found.y});
  };
  int64_t row = n / kLanes * kLanes;
  if (row < n) {
    const bool has_byte = row + Lane() < n;
    step(has_byte, has_byte ? place_at(row) : 0);
  }
  for (; row >= kRowsAhead * kLanes; row -= kRowsAhead * kLanes) {
    int places[kRowsAhead];
#pragma unroll
    for (int k = 0; k < kRowsAhead; ++k) places[k] = place_at(row - (k + 1) * kLanes);
#pragma unroll
    for (int k = 0; k < kRowsAhead; ++k) step(true, places[k]);
  }
  for (; row > 0; row -= kLanes) step(true, place_at(row - kLanes));
  const uint16_t* const from = encoder.Finish();
  if (Lane() == 0) lengths[p] = static_cast<uint64_t>(end - from) * kWordBytes;
}

// Copies coded strings to consecutive memory, with kPackBlocks blocks per string.
__global__ void PackKernel(const uint8_t* room, int64_t room_bytes, const uint64_t* offsets,
                           uint8_t* packed) {
  const int64_t p = blockIdx.x / kPackBlocks, part = blockIdx.x % kPackBlocks;
  const auto words = static_cast<int64_t>((offsets[p + 1] - offsets[p]) / kWordBytes);
  const auto* const from = reinterpret_cast<const uint16_t*>(room + (p + 1) * room_bytes) - words;
  auto* const to = reinterpret_cast<uint16_t*>(packed + offsets[p]);
  const int64_t step = int64_t{blockDim.x} * kPackBlocks;
  for (int64_t i = part * blockDim.x + threadIdx.x; i < words; i += step) to[i] = from[i];
}

// Fills decoding tables, with a block per table and a thread per byte. The frequencies add up to
// kScale.
__global__ void FillDecoderKernel(const uint32_t* frequencies, DecoderEntry* entries) {
  __shared__ uint32_t starts[kSymbols], own[kSymbols];
  const int64_t table = blockIdx.x;
  const uint32_t f = frequencies[table * kSymbols + threadIdx.x];
  uint32_t total;
  starts[threadIdx.x] = BlockExclusiveSum(f, &total);
  own[threadIdx.x] = f;
  __syncthreads();
  for (uint32_t place = threadIdx.x; place < kScale; place += kSymbols) {
    // A binary search finds the last byte that begins at or before the place; its frequency is not
    // 0.
    uint32_t s = 0;
    for (uint32_t step = kSymbols / 2; step > 0; step /= 2) {
      if (starts[s + step] <= place) s += step;
    }
    entries[table * kScale + place] = (place - starts[s]) << 20 | (own[s] - 1) << 8 | s;
  }
}

// Window over a string's words: each lane holds three of 96. The last 32 are still being loaded
// while the others are used.
class Words {
 public:
  __device__ Words(const uint16_t* from, const uint16_t* end)
      : next_(from),
        left_(end - from),
        first_(At(0)),
        second_(At(kLanes)),
        third_(At(2 * kLanes)) {}

  __device__ int64_t left() const { return left_; }

  // Returns the unused word number `rank`, below 32; the whole warp calls it.
  __device__ uint32_t Get(unsigned rank) const {
    const int at = static_cast<int>(used_ + rank);
    const uint32_t a = __shfl_sync(kWholeWarp, first_, at % kLanes);
    const uint32_t b = __shfl_sync(kWholeWarp, second_, at % kLanes);
    return at < kLanes ? a : b;
  }
  // Marks `count` words as used: at most 32 and at most what is left, equally many in all lanes.
  __device__ void Use(unsigned count) {
    used_ += count;
    left_ -= count;
    if (used_ < kLanes) return;
    used_ -= kLanes;
    next_ += kLanes;
    first_ = second_;
    second_ = third_;
    third_ = At(2 * kLanes);
  }

 private:
  // Returns this lane's word i; 0 behind the end.
  __device__ uint32_t At(int64_t i) const {
    const int64_t at = i + Lane();
    return at < left_ + used_ ? next_[at] : 0;
  }

  const uint16_t* next_;
  int64_t left_;  // number of words not used yet
  unsigned used_ = 0;
  uint32_t first_, second_, third_;
};

// Decoder of this warp's string.
class Decoder {
 public:
  // Starts with the states and words of the string.
  __device__ Decoder(const uint16_t* from, const uint16_t* end)
      : words_(from + 2 * kLanes, end),
        x_(from[2 * Lane()] | static_cast<uint32_t>(from[2 * Lane() + 1]) << kWordBits) {}

  __device__ bool CanBegin() const {
    return __all_sync(kWholeWarp, x_ >= kLeastState && x_ < 1u << 31) != 0;
  }
  __device__ bool HasEnded() const {
    return __all_sync(kWholeWarp, x_ == kLeastState && words_.left() == 0) != 0;
  }

  // Returns the place of the next byte's entry in its table.
  __device__ uint32_t place() const { return x_ % kScale; }
  // Removes the byte of each lane that has one from its state; the whole warp calls it. Returns
  // false, in the whole warp, if words are missing.
  __device__ bool Step(bool has_byte, DecoderEntry entry) {
    if (has_byte) x_ = ((entry >> 8) % kScale + 1) * (x_ >> kScaleBits) + (entry >> 20);
    const bool is_low = has_byte && x_ < kLeastState;
    const unsigned low = __ballot_sync(kWholeWarp, is_low);
    const unsigned count = __popc(low);
    if (count > words_.left()) return false;
    const uint32_t word = words_.Get(__popc(low >> Lane() >> 1));
    if (is_low) x_ = x_ << kWordBits | word;
    words_.Use(count);
    return true;
  }

 private:
  Words words_;
  uint32_t x_;
};

__device__ Decoder DecoderOf(const uint8_t* packed, const uint64_t* offsets, int64_t p) {
  return Decoder(reinterpret_cast<const uint16_t*>(packed + offsets[p]),
                 reinterpret_cast<const uint16_t*>(packed + offsets[p + 1]));
}

// Decodes strings with one table.
__global__ void DecodeKernel(const uint8_t* packed, const uint64_t* offsets, RansStrings strings,
                             const DecoderEntry* entries, uint8_t* bytes, uint32_t* fault) {
  __shared__ DecoderEntry table[kScale];
  for (uint32_t i = threadIdx.x; i < kScale; i += kThreads) table[i] = entries[i];
  __syncthreads();
  const int64_t p = int64_t{blockIdx.x} * kWarps + threadIdx.x / kLanes;
  if (p >= strings.count) return;
  const int64_t begin = strings.begin(p), n = strings.begin(p + 1) - begin;
  Decoder decoder = DecoderOf(packed, offsets, p);
  bool is_right = decoder.CanBegin();
  for (int64_t i = Lane(); is_right && i - Lane() < n; i += kLanes) {
    const DecoderEntry entry = table[decoder.place()];
    if (i < n) bytes[begin + i] = static_cast<uint8_t>(entry);
    is_right = decoder.Step(i < n, entry);
  }
  is_right = is_right && decoder.HasEnded();
  if (!is_right && Lane() == 0) *fault = 1;
}

struct ContextOfSum {
  uint8_t of[kSums];
};

// Decodes strings of whole rows with a table for each context, each by a block of one warp. Of
// earlier rows a lane needs only the bytes that it has decoded itself.
__global__ void DecodeInContextsKernel(const uint8_t* packed, const uint64_t* offsets,
                                       RansStrings strings, const DecoderEntry* entries,
                                       Neighbours neighbours, ContextOfSum contexts,
                                       uint8_t* all_bytes, uint32_t* fault) {
  constexpr int kRecent = 512;  // number of last rows whose magnitudes are kept
  __shared__ uint8_t recent[kRecent][kLanes];
  // Copied to shared memory: arguments that are indexed at run time would stand in local memory.
  __shared__ uint32_t rows_back[Neighbours::kMost];
  __shared__ uint8_t context_of[kSums];
  if (threadIdx.x == 0) {
#pragma unroll
    for (int k = 0; k < Neighbours::kMost; ++k) rows_back[k] = neighbours.rows[k];
#pragma unroll
    for (int sum = 0; sum < kSums; ++sum) context_of[sum] = contexts.of[sum];
  }
  __syncthreads();
  const int64_t p = blockIdx.x, begin = strings.begin(p);
  const int64_t num_rows = (strings.begin(p + 1) - begin) / kLanes;
  uint8_t* const bytes = all_bytes + begin;
  Decoder decoder = DecoderOf(packed, offsets, p);
  bool is_right = decoder.CanBegin();
  for (int64_t row = 0; is_right && row < num_rows; ++row) {
    int sum = 0;
    for (int k = 0; k < neighbours.count; ++k) {
      const int64_t from = row - int64_t{rows_back[k]};
      if (from < 0) continue;
      sum += row - from <= kRecent ? recent[from % kRecent][Lane()]
                                   : (bytes[from * kLanes + Lane()] + 1) / 2;
    }
    const uint32_t context = context_of[min(sum, kSums - 1)];
    const DecoderEntry entry = __ldg(entries + context * kScale + decoder.place());
    const auto byte = static_cast<uint8_t>(entry);
    bytes[row * kLanes + Lane()] = byte;
    recent[row % kRecent][Lane()] = static_cast<uint8_t>((byte + 1) / 2);
    is_right = decoder.Step(true, entry);
  }
  is_right = is_right && decoder.HasEnded();
  if (!is_right && Lane() == 0) *fault = 1;
}

std::vector<EncoderEntry> EncoderEntriesOf(const Frequencies* tables, int num_tables) {
  std::vector<EncoderEntry> entries;
  for (int t = 0; t < num_tables; ++t) {
    uint32_t start = 0;
    for (const uint32_t f : tables[t]) {
      uint32_t shift = 0;
      while (1u << shift < f) ++shift;
      const uint64_t power = uint64_t{1} << (31 + shift);
      EncoderEntry& entry = entries.emplace_back();
      if (f > 0) entry.reciprocal = static_cast<uint32_t>((power + f - 1) / f);
      entry.packed = f | start << kFieldBits | shift << (2 * kFieldBits);
      start += f;
    }
  }
  return entries;
}

}  // namespace

Error RansWriter::Encode(const uint8_t* bytes, const RansStrings& strings, const uint8_t* sums,
                         const Frequencies* tables) {
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  const std::vector<EncoderEntry> entries = EncoderEntriesOf(tables, sums == nullptr ? 1 : kSums);
  const size_t entries_bytes = entries.size() * sizeof(EncoderEntry);
  const size_t room_bytes = RansBytes(static_cast<size_t>(strings.longest())) / 4 * 4 + 4;
  const auto count = static_cast<size_t>(strings.count);
  RETURN_ERROR(entries_.Reserve(entries_bytes));
  RETURN_ERROR(room_.Reserve(count * room_bytes));
  RETURN_ERROR(offsets_.Reserve((count + 1) * sizeof(uint64_t)));
  RETURN_ERROR(packed_.Reserve(count * room_bytes));
  RETURN_ERROR(device_->SubmitCopyFromHost(entries_.as<void>(), entries.data(), entries_bytes));
  auto* const offsets = offsets_.as<uint64_t>();
  RETURN_ERROR(Launch(stream, BlocksFor(strings.count, kWarps), dim3(kThreads),
                      sums == nullptr ? EncodeKernel<1> : EncodeKernel<kSums>, bytes, strings, sums,
                      entries_.as<const EncoderEntry>(), room_.as<uint8_t>(),
                      static_cast<int64_t>(room_bytes), offsets));
  RETURN_ERROR(SubmitPrefixSums(stream, offsets, strings.count));
  RETURN_ERROR(Launch(stream, dim3(static_cast<unsigned>(count * kPackBlocks)), dim3(kPackThreads),
                      PackKernel, room_.as<const uint8_t>(), static_cast<int64_t>(room_bytes),
                      offsets, packed_.as<uint8_t>()));
  on_host_.resize(count + 1);
  return device_->CopyToHost(on_host_.data(), offsets, (count + 1) * sizeof(uint64_t));
}

Error RansReader::Submit(const uint8_t* packed, const std::vector<uint64_t>& offsets,
                         const RansModel& model, const RansStrings& strings, uint8_t* bytes,
                         uint32_t* fault) {
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  const auto num_tables = static_cast<size_t>(model.num_tables);
  const size_t offsets_bytes = offsets.size() * sizeof(uint64_t);
  RETURN_ERROR(entries_.Reserve(num_tables * kScale * sizeof(DecoderEntry)));
  RETURN_ERROR(frequencies_.Reserve(num_tables * sizeof(Frequencies)));
  RETURN_ERROR(offsets_.Reserve(offsets_bytes));
  RETURN_ERROR(packed_.Reserve(offsets.back()));
  RETURN_ERROR(device_->SubmitCopyFromHost(frequencies_.as<void>(), model.tables,
                                           num_tables * sizeof(Frequencies)));
  RETURN_ERROR(device_->SubmitCopyFromHost(offsets_.as<void>(), offsets.data(), offsets_bytes));
  RETURN_ERROR(device_->SubmitCopyFromHost(packed_.as<void>(), packed, offsets.back()));
  RETURN_ERROR(Launch(stream, dim3(static_cast<unsigned>(num_tables)), dim3(kSymbols),
                      FillDecoderKernel, frequencies_.as<const uint32_t>(),
                      entries_.as<DecoderEntry>()));
  if (model.neighbours.count == 0) {
    return Launch(stream, BlocksFor(strings.count, kWarps), dim3(kThreads), DecodeKernel,
                  packed_.as<const uint8_t>(), offsets_.as<const uint64_t>(), strings,
                  entries_.as<const DecoderEntry>(), bytes, fault);
  }
  ContextOfSum contexts;
  for (int sum = 0; sum < kSums; ++sum) contexts.of[sum] = model.context_of_sum[sum];
  return Launch(stream, dim3(static_cast<unsigned>(strings.count)), dim3(kLanes),
                DecodeInContextsKernel, packed_.as<const uint8_t>(), offsets_.as<const uint64_t>(),
                strings, entries_.as<const DecoderEntry>(), model.neighbours, contexts, bytes,
                fault);
}

}  // namespace thinwire
