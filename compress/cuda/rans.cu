#include "compress/cuda/prefix_sums.h"
#include "compress/cuda/rans.h"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire {
namespace {

constexpr int kLanes = static_cast<int>(kStates);
static_assert(kStates == kWarpThreads, "a thread has a state");
constexpr int kWarps = 4;  // warps of a block; each codes a string
constexpr int kThreads = kWarps * kLanes;
constexpr int kRowsAhead = 8;  // rows whose bytes are loaded while those before them are coded
constexpr int kPackBlocks = 8, kPackThreads = 256;

// Table entry of a byte of frequency f, which replaces the division x / f by a product. For all x <
// 2^31, x / f is x times `reciprocal`, shifted down by 31 + s bits. Here reciprocal = ceil(2^(31 +
// s) / f), and 2^s is the least power of two not below f (Alverson, ARITH 1991). The shift by 32
// bits costs nothing, s - 1 are left. For f = 1 they would be -1: there the reciprocal is 2^32 - 1,
// so that the quotient is x - 1, and `bias` is kScale - 1 more, for which that makes up.
struct EncoderEntry {
  uint32_t reciprocal = 0;
  uint32_t packed = 0;  // f (13 bits), bias (13 bits), shift (4 bits)
};
constexpr int kFieldBits = 13;
constexpr uint32_t kFieldMask = (1u << kFieldBits) - 1;
constexpr int kFullBits = 31 - kScaleBits;  // as in compress/entropy/rans.cc

__device__ unsigned Lane() { return threadIdx.x % kLanes; }

// Encoder of this warp's string. Words are written before `word_`, the last one first.
class Encoder {
 public:
  __device__ explicit Encoder(uint16_t* end) : word_(end), lower_((1u << Lane()) - 1) {}

  // Adds a byte, given its entry, to the state of each lane that has one; the whole warp calls it.
  // A vote tells which states are full, and the number of full lower lanes where each writes its
  // word.
  __device__ void Step(bool has_byte, const EncoderEntry& entry) {
    const uint32_t f = entry.packed & kFieldMask;
    const uint32_t bias = entry.packed >> kFieldBits & kFieldMask;
    const bool is_full = has_byte && x_ >= f << kFullBits;
    const auto word = static_cast<uint16_t>(x_);
    // The next byte waits for the state alone, which is computed before the word is placed.
    const uint32_t x = is_full ? x_ >> kWordBits : x_;
    const uint32_t quotient = __umulhi(x, entry.reciprocal) >> (entry.packed >> (2 * kFieldBits));
    // kScale (x / f) + x mod f + start, for x mod f = x - f (x / f)
    if (has_byte) x_ = x + bias + quotient * (kScale - f);
    const unsigned full = __ballot_sync(kWholeWarp, is_full);
    if (is_full) word_[-1 - __popc(full & lower_)] = word;
    word_ -= __popc(full);
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
  const unsigned lower_;  // mask of the lower lanes
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
  const auto load = [&](int64_t row, int(&places)[kRowsAhead]) {
#pragma unroll
    for (int k = 0; k < kRowsAhead; ++k) places[k] = place_at(row - (k + 1) * kLanes);
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
  constexpr int64_t kAhead = kRowsAhead * kLanes;
  int places[kRowsAhead], ahead[kRowsAhead];
  if (row >= kAhead) load(row, ahead);
  for (; row >= kAhead; row -= kAhead) {
#pragma unroll
    for (int k = 0; k < kRowsAhead; ++k) places[k] = ahead[k];
    if (row >= 2 * kAhead) load(row - kAhead, ahead);
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

EncoderEntry EntryOf(uint32_t f, uint32_t start) {
  if (f == 0) return {};
  if (f == 1) return {UINT32_MAX, f | (start + kScale - 1) << kFieldBits};
  uint32_t s = 1;
  while (1u << s < f) ++s;
  const uint64_t power = uint64_t{1} << (31 + s);
  return {static_cast<uint32_t>((power + f - 1) / f),
          f | start << kFieldBits | (s - 1) << (2 * kFieldBits)};
}

std::vector<EncoderEntry> EntriesOf(const Frequencies* tables, int num_tables) {
  std::vector<EncoderEntry> entries;
  for (int t = 0; t < num_tables; ++t) {
    uint32_t start = 0;
    for (const uint32_t f : tables[t]) {
      entries.push_back(EntryOf(f, start));
      start += f;
    }
  }
  return entries;
}

}  // namespace

Error RansWriter::Encode(const uint8_t* bytes, const RansStrings& strings, const uint8_t* sums,
                         const Frequencies* tables) {
  const std::vector<EncoderEntry> entries = EntriesOf(tables, sums == nullptr ? 1 : kSums);
  const size_t entries_bytes = entries.size() * sizeof(EncoderEntry);
  const size_t room_bytes = RansBytes(static_cast<size_t>(strings.longest())) / 4 * 4 + 4;
  const auto count = static_cast<size_t>(strings.count);
  RETURN_ERROR(entries_.Reserve(entries_bytes));
  RETURN_ERROR(room_.Reserve(count * room_bytes));
  RETURN_ERROR(offsets_.Reserve((count + 1) * sizeof(uint64_t)));
  RETURN_ERROR(device_->SubmitCopyFromHost(entries_.as<void>(), entries.data(), entries_bytes));
  auto* const offsets = offsets_.as<uint64_t>();
  RETURN_ERROR(Launch(device_, BlocksFor(strings.count, kWarps), dim3(kThreads),
                      sums == nullptr ? EncodeKernel<1> : EncodeKernel<kSums>, bytes, strings, sums,
                      entries_.as<const EncoderEntry>(), room_.as<uint8_t>(),
                      static_cast<int64_t>(room_bytes), offsets));
  RETURN_ERROR(SubmitPrefixSums(device_, offsets, strings.count));
  on_host_.resize(count + 1);
  RETURN_ERROR(device_->CopyToHost(on_host_.data(), offsets, (count + 1) * sizeof(uint64_t)));
  RETURN_ERROR(packed_.Reserve(on_host_.back()));
  return Launch(device_, dim3(static_cast<unsigned>(count * kPackBlocks)), dim3(kPackThreads),
                PackKernel, room_.as<const uint8_t>(), static_cast<int64_t>(room_bytes), offsets,
                packed_.as<uint8_t>());
}

}  // namespace thinwire
