#include <algorithm>

#include "compress/cuda/rans.h"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"
#include "tensor/cuda/scan.cuh"

namespace thinwire {
namespace {

constexpr int kLanes = static_cast<int>(kStates);
constexpr int kWarps = 4;  // warps of a block; each decodes a string
constexpr int kThreads = kWarps * kLanes;
// A warp decodes so many rows between two looks at its words, of which they take at most kTogether.
constexpr int kRowsTogether = 8, kTogether = kRowsTogether * kLanes;
constexpr int kRing = 2 * kTogether;

// Table entry for each value of a state's lower 12 bits, as in compress/entropy/rans_decode.cc.
using DecoderEntry = uint32_t;

__device__ unsigned Lane() { return threadIdx.x % kLanes; }

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

// Words of a string on their way to a warp: those that are next stand in a ring in shared memory,
// and kTogether behind them in the lanes' registers, to which they are loaded while the others are
// used. Behind the last word it is repeated.
class Words {
 public:
  // There are other words before `from`.
  __device__ Words(const uint16_t* from, const uint16_t* end, uint16_t* ring)
      : from_(from), count_(static_cast<uint32_t>(end - from)), ring_(ring) {
    Load();
  }

  // Makes the next kTogether words available; the whole warp calls it.
  __device__ void Refill() {
    while (filled_ - used_ < kTogether) {
      __syncwarp();  // words that are written over were read
#pragma unroll
      for (int k = 0; k < kRowsTogether; ++k) {
        ring_[(filled_ + k * kLanes + Lane()) % kRing] = static_cast<uint16_t>(ahead_[k]);
      }
      filled_ += kTogether;
      Load();
      __syncwarp();
    }
  }
  // Returns the unused word number `rank`, of those that are available.
  __device__ uint32_t Get(uint32_t rank) const { return ring_[(used_ + rank) % kRing]; }
  __device__ void Use(uint32_t count) { used_ += count; }

  // Returns whether exactly the string's words were used.
  __device__ bool AreUsedUp() const { return used_ == count_; }

 private:
  __device__ void Load() {
#pragma unroll
    for (int k = 0; k < kRowsTogether; ++k) {
      // Nothing depends on what is loaded, so that the warp goes on while it is.
      const int64_t at = filled_ + k * kLanes + Lane();
      ahead_[k] = from_[min(at, int64_t{count_} - 1)];
    }
  }

  const uint16_t* const from_;
  const uint32_t count_;
  uint16_t* const ring_;
  uint32_t used_ = 0, filled_ = 0;  // used_ grows by kTogether at most between two Refills
  uint32_t ahead_[kRowsTogether];
};

// Decoder of this warp's string.
class Decoder {
 public:
  // Starts with the states and words of string p. `ring` is the warp's shared memory.
  __device__ Decoder(const uint8_t* packed, const uint64_t* offsets, int64_t p, uint16_t* ring)
      : Decoder(reinterpret_cast<const uint16_t*>(packed + offsets[p]),
                reinterpret_cast<const uint16_t*>(packed + offsets[p + 1]), ring) {}

  __device__ bool CanBegin() const {
    return __all_sync(kWholeWarp, x_ >= kLeastState && x_ < 1u << 31) != 0;
  }
  // Returns whether the string was right: the whole warp calls it, behind the last row.
  __device__ bool HasEnded() const {
    return __all_sync(kWholeWarp, x_ == kLeastState && words_.AreUsedUp()) != 0;
  }

  // Prepares for at most kRowsTogether calls of Step; the whole warp calls both.
  __device__ void Refill() { words_.Refill(); }
  // Returns the place of the next byte's entry in its table.
  __device__ uint32_t place() const { return x_ % kScale; }
  // Removes the byte of each lane that has one from its state. A vote tells which states are low,
  // and the number of low higher lanes which word each takes.
  __device__ void Step(bool has_byte, DecoderEntry entry) {
    const uint32_t rest = x_ >> kScaleBits;
    if (has_byte) x_ = (entry >> 8) % kScale * rest + (rest + (entry >> 20));
    const bool is_low = has_byte && x_ < kLeastState;
    const unsigned low = __ballot_sync(kWholeWarp, is_low);
    // Every lane reads a word, which needs no branch.
    const uint32_t word = words_.Get(__popc(low & higher_)) & (is_low ? UINT32_MAX : 0);
    x_ = x_ << (is_low ? kWordBits : 0) | word;
    words_.Use(__popc(low));
  }

 private:
  __device__ Decoder(const uint16_t* from, const uint16_t* end, uint16_t* ring)
      : words_(from + 2 * kLanes, end, ring),
        x_(from[2 * Lane()] | static_cast<uint32_t>(from[2 * Lane() + 1]) << kWordBits),
        higher_(~((2u << Lane()) - 1)) {}

  Words words_;
  uint32_t x_;
  const unsigned higher_;  // mask of the higher lanes
};

// Calls step(row) for each row from 0 on, and the decoder's Refill in time.
template <typename Step>
__device__ inline void ForEachRow(Decoder* decoder, uint32_t num_rows, const Step& step) {
  uint32_t row = 0;
  for (; row + kRowsTogether <= num_rows; row += kRowsTogether) {
    decoder->Refill();
#pragma unroll
    for (int k = 0; k < kRowsTogether; ++k) step(row + k);
  }
  decoder->Refill();
  for (; row < num_rows; ++row) step(row);
}

// Decodes strings with one table.
__global__ void DecodeKernel(const uint8_t* packed, const uint64_t* offsets, RansStrings strings,
                             const DecoderEntry* entries, uint8_t* bytes, uint32_t* fault) {
  __shared__ DecoderEntry table[kScale];
  __shared__ uint16_t rings[kWarps][kRing];
  for (uint32_t i = threadIdx.x; i < kScale; i += kThreads) table[i] = entries[i];
  __syncthreads();
  const int64_t p = int64_t{blockIdx.x} * kWarps + threadIdx.x / kLanes;
  if (p >= strings.count) return;
  const int64_t begin = strings.begin(p), n = strings.begin(p + 1) - begin;
  uint8_t* const own = bytes + begin + Lane();
  Decoder decoder(packed, offsets, p, rings[threadIdx.x / kLanes]);
  bool is_right = decoder.CanBegin();
  if (is_right) {
    const auto whole_rows = static_cast<uint32_t>(n / kLanes);
    ForEachRow(&decoder, whole_rows, [&](uint32_t row) {
      const DecoderEntry entry = table[decoder.place()];
      own[int64_t{row} * kLanes] = static_cast<uint8_t>(entry);
      decoder.Step(true, entry);
    });
    const bool has_byte = int64_t{whole_rows} * kLanes + Lane() < n;
    const DecoderEntry entry = table[decoder.place()];
    if (has_byte) own[int64_t{whole_rows} * kLanes] = static_cast<uint8_t>(entry);
    decoder.Refill();
    decoder.Step(has_byte, entry);
    is_right = decoder.HasEnded();
  }
  if (!is_right && Lane() == 0) *fault = 1;
}

struct ContextOfSum {
  uint8_t of[kSums];
};

// Rows whose magnitudes are kept in shared memory; behind them is a row of zeros.
constexpr uint32_t kRecent = 512;

// Neighbours, near ones first. Slot k says where the magnitudes of near neighbour k stand at a row:
// in row (row - back) & mask | zeros of those that are kept. Slots without a neighbour read zeros.
struct NearAndFar {
  struct Slot {
    uint32_t back = 0, mask = 0, zeros = kRecent;
  };
  Slot near[Neighbours::kMost];
  uint32_t far[Neighbours::kMost] = {};  // rows back, more than kRecent
  int num_far = 0;
};

// Decodes strings of whole rows with a table for each context, each by a block of one warp. Of
// earlier rows a lane needs only the bytes that it has decoded itself.
__global__ void DecodeInContextsKernel(const uint8_t* packed, const uint64_t* offsets,
                                       RansStrings strings, const DecoderEntry* entries,
                                       NearAndFar neighbours, ContextOfSum contexts,
                                       uint8_t* all_bytes, uint32_t* fault) {
  // Rows before the first have zeros too.
  __shared__ uint8_t recent[kRecent + 1][kLanes];
  __shared__ uint16_t ring[kRing];
  // Copied to shared memory: arguments that are indexed at run time would stand in local memory.
  __shared__ uint32_t context_of[kSums], far[Neighbours::kMost];
  if (threadIdx.x == 0) {
#pragma unroll
    for (int sum = 0; sum < kSums; ++sum) context_of[sum] = contexts.of[sum] * kScale;
#pragma unroll
    for (int k = 0; k < Neighbours::kMost; ++k) far[k] = neighbours.far[k];
  }
#pragma unroll 16
  for (uint32_t row = 0; row <= kRecent; ++row) recent[row][Lane()] = 0;
  __syncthreads();
  const int64_t p = blockIdx.x, begin = strings.begin(p);
  const auto num_rows = static_cast<uint32_t>((strings.begin(p + 1) - begin) / kLanes);
  uint8_t* const own = all_bytes + begin + Lane();
  Decoder decoder(packed, offsets, p, ring);
  bool is_right = decoder.CanBegin();
  if (is_right) {
    ForEachRow(&decoder, num_rows, [&](uint32_t row) {
      uint32_t sum = 0;
#pragma unroll
      for (const NearAndFar::Slot& slot : neighbours.near) {
        sum += recent[((row - slot.back) & slot.mask) | slot.zeros][Lane()];
      }
      for (int k = 0; k < neighbours.num_far && far[k] <= row; ++k) {
        sum += (own[int64_t{row - far[k]} * kLanes] + 1u) / 2;
      }
      const uint32_t context = context_of[min(sum, kSums - 1u)];
      const DecoderEntry entry = __ldg(&entries[context | decoder.place()]);
      const auto byte = static_cast<uint8_t>(entry);
      own[int64_t{row} * kLanes] = byte;
      recent[row % kRecent][Lane()] = static_cast<uint8_t>((byte + 1) / 2);
      decoder.Step(true, entry);
    });
    is_right = decoder.HasEnded();
  }
  if (!is_right && Lane() == 0) *fault = 1;
}

NearAndFar NearFirst(const Neighbours& neighbours) {
  NearAndFar sorted;
  int num_near = 0;
  for (int k = 0; k < neighbours.count; ++k) {
    const uint32_t back = neighbours.rows[k];
    if (back <= kRecent) {
      sorted.near[num_near++] = {back, kRecent - 1, 0};
    } else {
      sorted.far[sorted.num_far++] = back;
    }
  }
  std::sort(sorted.far, sorted.far + sorted.num_far);
  return sorted;
}

}  // namespace

Error RansReader::Submit(const std::vector<absl::Span<const uint8_t>>& parts,
                         const RansModel& model, const RansStrings& strings, uint8_t* bytes,
                         uint32_t* fault) {
  on_host_ = {0};
  for (const absl::Span<const uint8_t> part : parts) {
    if (part.size() % kWordBytes != 0) return Refused();
    on_host_.push_back(on_host_.back() + part.size());
  }
  const auto num_tables = static_cast<size_t>(model.num_tables);
  const size_t offsets_bytes = on_host_.size() * sizeof(uint64_t);
  RETURN_ERROR(entries_.Reserve(num_tables * kScale * sizeof(DecoderEntry)));
  RETURN_ERROR(frequencies_.Reserve(num_tables * sizeof(Frequencies)));
  RETURN_ERROR(offsets_.Reserve(offsets_bytes));
  RETURN_ERROR(packed_.Reserve(on_host_.back()));
  RETURN_ERROR(device_->SubmitCopyFromHost(frequencies_.as<void>(), model.tables,
                                           num_tables * sizeof(Frequencies)));
  RETURN_ERROR(device_->SubmitCopyFromHost(offsets_.as<void>(), on_host_.data(), offsets_bytes));
  RETURN_ERROR(device_->SubmitCopyFromHost(packed_.as<void>(), parts[0].data(), on_host_.back()));
  RETURN_ERROR(Launch(device_, dim3(static_cast<unsigned>(num_tables)), dim3(kSymbols),
                      FillDecoderKernel, frequencies_.as<const uint32_t>(),
                      entries_.as<DecoderEntry>()));
  if (model.neighbours.count == 0) {
    return Launch(device_, BlocksFor(strings.count, kWarps), dim3(kThreads), DecodeKernel,
                  packed_.as<const uint8_t>(), offsets_.as<const uint64_t>(), strings,
                  entries_.as<const DecoderEntry>(), bytes, fault);
  }
  ContextOfSum contexts;
  for (int sum = 0; sum < kSums; ++sum) contexts.of[sum] = model.context_of_sum[sum];
  return Launch(device_, dim3(static_cast<unsigned>(strings.count)), dim3(kLanes),
                DecodeInContextsKernel, packed_.as<const uint8_t>(), offsets_.as<const uint64_t>(),
                strings, entries_.as<const DecoderEntry>(), NearFirst(model.neighbours), contexts,
                bytes, fault);
}

}  // namespace thinwire
