#include "compress/cpu/rans.h"

#include <algorithm>

#include "compress/cpu/bytes.h"
#include "compress/cpu/scratch.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/rans.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#ifndef THINWIRE_RANS_TABLES
#define THINWIRE_RANS_TABLES
namespace thinwire {

// How a byte enters a state: its frequency (16 bits), and the sum of those before it (16 bits).
using EncoderEntry = uint32_t;

// For each of 2^12 lower ends of a state: the byte (8 bits), its frequency less 1 (12 bits), and
// the place within the frequency (12 bits).
using DecoderEntry = uint32_t;

// A state of at least 2^19 times its frequency would not be below 2^31 with a byte in it.
constexpr int kFullBits = 31 - kScaleBits;

}  // namespace thinwire
#endif

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using U32 = hn::CappedTag<uint32_t, 16>;
using I32 = hn::RebindToSigned<U32>;
using F32 = hn::Rebind<float, U32>;
using U16 = hn::Rebind<uint16_t, U32>;
using U8 = hn::Rebind<uint8_t, U32>;
using Words = hn::Vec<U32>;
constexpr size_t kLanes = hn::MaxLanes(U32());
static_assert(kStates % kLanes == 0, "a row is whole vectors");
constexpr size_t kVectors = kStates / kLanes;

// A vector of a row's bytes: those from `lane` on. No wider than what is stored at once, so that a
// row can be loaded as soon as it is decoded.
constexpr size_t kRowCap = kLanes < 16 ? kStates : 16;
using Row = hn::CappedTag<uint8_t, kRowCap>;
constexpr size_t kRowLanes = hn::MaxLanes(Row());
HWY_INLINE hn::Vec<Row> SumOfNeighbours(const Neighbours& neighbours, const uint8_t* bytes,
                                        size_t row, size_t lane) {
  const Row d;
  auto sum = hn::Zero(d);
  for (int k = 0; k < neighbours.count; ++k) {
    if (neighbours.rows[k] > row) continue;
    const auto code = hn::LoadU(d, bytes + (row - neighbours.rows[k]) * kStates + lane);
    sum = hn::SaturatedAdd(sum, hn::AverageRound(code, hn::Zero(d)));
  }
  return hn::Min(sum, hn::Set(d, kSums - 1));
}

void SumsImpl(const Neighbours& neighbours, const uint8_t* bytes, size_t row, size_t num_rows,
              uint8_t* sums) {
  for (size_t i = 0; i < num_rows; ++i) {
    for (size_t lane = 0; lane < kStates; lane += kRowLanes) {
      hn::StoreU(SumOfNeighbours(neighbours, bytes, row + i, lane), Row(),
                 sums + i * kStates + lane);
    }
  }
}

// The states, those that are full without their lower words, which are written before `word`, the
// first lane's last.
HWY_INLINE Words WithoutWords(Words x, Words f, uint8_t** word) {
  const U32 d;
  const auto upper = hn::BitCast(I32(), hn::ShiftRight<kFullBits>(x));
  const auto most = hn::BitCast(I32(), hn::Sub(f, hn::Set(d, 1)));
  const auto full = hn::RebindMask(d, hn::Gt(upper, most));
  const auto low = hn::Compress(hn::And(x, hn::Set(d, 0xFFFF)), full);
  auto* const end = reinterpret_cast<uint16_t*>(*word);
  hn::StoreU(hn::DemoteTo(U16(), hn::BitCast(I32(), hn::Reverse(d, low))), U16(), end - kLanes);
  *word -= hn::CountTrue(d, full) * kWordBytes;
  return hn::IfThenElse(full, hn::ShiftRight<kWordBits>(x), x);
}

// The states with a byte more, of frequency f and with so many before it; x < f 2^19.
HWY_INLINE Words WithByte(Words state, Words frequency, Words start) {
  const I32 d;
  const auto x = hn::BitCast(d, state), f = hn::BitCast(d, frequency);
  // As a float it is off by less than one.
  const auto quotient = hn::ConvertTo(d, hn::Div(hn::ConvertTo(F32(), x), hn::ConvertTo(F32(), f)));
  const auto rest = hn::Sub(x, hn::Mul(quotient, f));
  const auto nearly =
      hn::Add(hn::ShiftLeft<kScaleBits>(quotient), hn::Add(rest, hn::BitCast(d, start)));
  // One more of the quotient is f less of the rest.
  const auto one_more = hn::Sub(hn::Set(d, kScale), f);
  const auto is_more = hn::Not(hn::BroadcastSignBit(hn::Sub(rest, f)));
  const auto is_less = hn::BroadcastSignBit(rest);
  return hn::BitCast(
      U32(), hn::Sub(hn::Add(nearly, hn::And(is_more, one_more)), hn::And(is_less, one_more)));
}

// One byte, of the last row.
HWY_INLINE uint32_t WithByte(uint32_t x, EncoderEntry entry, uint8_t** word) {
  const uint32_t f = entry & 0xFFFF, start = entry >> 16;
  if (x >> kFullBits >= f) {
    *word -= kWordBytes;
    StoreAs(static_cast<uint16_t>(x), *word);
    x >>= kWordBits;
  }
  return (x / f << kScaleBits) + x % f + start;
}

// Codes bytes from the last row to the first and, in a row, from the first to the last, so that
// words come out in the reverse of the order in which they are read: before `end`.
uint8_t* EncodeImpl(const uint8_t* bytes, size_t n, const uint8_t* contexts,
                    const EncoderEntry* entries, uint8_t* end) {
  const U32 d;
  uint8_t* word = end;
  HWY_ALIGN uint32_t states[kStates];
  std::fill_n(states, kStates, kLeastState);
  const size_t whole = n / kStates * kStates;
  for (size_t i = whole; i < n; ++i) {
    states[i - whole] = WithByte(states[i - whole], entries[bytes[i]], &word);
  }
  Words x[kVectors];
  for (size_t v = 0; v < kVectors; ++v) x[v] = hn::Load(d, states + v * kLanes);
  for (size_t row = whole; row > 0;) {
    row -= kStates;
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = row + v * kLanes;
      auto place = hn::PromoteTo(I32(), hn::LoadU(U8(), bytes + at));
      if (contexts != nullptr) {
        const auto context = hn::PromoteTo(I32(), hn::LoadU(U8(), contexts + at));
        place = hn::Add(place, hn::ShiftLeft<8>(context));
      }
      const auto entry = hn::GatherIndex(d, entries, place);
      const auto f = hn::And(entry, hn::Set(d, 0xFFFF));
      x[v] = WithByte(WithoutWords(x[v], f, &word), f, hn::ShiftRight<16>(entry));
    }
  }
  for (size_t v = 0; v < kVectors; ++v) hn::Store(x[v], d, states + v * kLanes);
  uint8_t* const begin = word - kStatesBytes;
  for (size_t lane = 0; lane < kStates; ++lane) {
    StoreAs(states[lane], begin + lane * kStateBytes);
  }
  return begin;
}

// For each set of eight lanes, as bits: how many lanes above each are in it.
struct Ranks {
  Ranks() {
    for (int set = 0; set < 256; ++set) {
      for (int lane = 0; lane < 8; ++lane) {
        of[set][lane] = static_cast<uint8_t>(__builtin_popcount(set >> lane >> 1));
      }
    }
  }
  HWY_ALIGN uint8_t of[256][8];
};

// How many lanes above each are in the set.
HWY_INLINE Words RanksIn(hn::Mask<U32> set, const Ranks& ranks) {
  const U32 d;
  HWY_ALIGN uint8_t bytes[8] = {};
  hn::StoreMaskBits(d, set, bytes);
  if (kLanes <= 8) return hn::PromoteTo(d, hn::LoadU(U8(), ranks.of[bytes[0]]));
  HWY_ALIGN static constexpr uint32_t kAbove[16] = {0xFFFE, 0xFFFC, 0xFFF8, 0xFFF0, 0xFFE0, 0xFFC0,
                                                    0xFF80, 0xFF00, 0xFE00, 0xFC00, 0xF800, 0xF000,
                                                    0xE000, 0xC000, 0x8000, 0};
  const auto bits = hn::Set(d, LoadAs<uint16_t>(bytes));
  return hn::PopulationCount(hn::And(bits, hn::Load(d, kAbove)));
}

// The states that a string was put into, and the words behind them.
class Decoder {
 public:
  Decoder(const RansModel& model, const DecoderEntry* entries, const uint8_t* from,
          const uint8_t* end)
      : model_(model), entries_(entries), word_(from + kStatesBytes), end_(end) {
    for (size_t lane = 0; lane < kStates; ++lane) {
      states_[lane] = LoadAs<uint32_t>(from + lane * kStateBytes);
    }
  }

  template <bool kHasContexts>
  const char* Decode(uint8_t* bytes, size_t n) {
    if (!std::all_of(states_, states_ + kStates, IsState)) return "a state below 2^15 or from 2^31";
    if ((end_ - word_) % kWordBytes != 0) return "half a word";
    HWY_ALIGN uint8_t contexts[kStates] = {};
    for (size_t i = DecodeRows<kHasContexts>(bytes, n); i < n; i += kStates) {
      if (kHasContexts) WriteContexts(bytes, i / kStates, contexts);
      if (!DecodeBytes(contexts, std::min(kStates, n - i), bytes + i)) {
        return "words that are cut short";
      }
    }
    if (word_ != end_) return "words that are too many";
    const bool ends = std::all_of(states_, states_ + kStates,
                                  [](uint32_t state) { return state == kLeastState; });
    return ends ? nullptr : "states that do not end where they began";
  }

 private:
  static bool IsState(uint32_t x) { return x >= kLeastState && x < 1u << 31; }

  HWY_INLINE void WriteContexts(const uint8_t* bytes, size_t row, uint8_t* contexts) const {
    const auto of_sum = hn::LoadDup128(Row(), model_.context_of_sum);
    for (size_t lane = 0; lane < kStates; lane += kRowLanes) {
      const auto sum = SumOfNeighbours(model_.neighbours, bytes, row, lane);
      hn::Store(hn::TableLookupBytes(of_sum, sum), Row(), contexts + lane);
    }
  }

  // A byte of each of the first n states. False if words are missing.
  bool DecodeBytes(const uint8_t* contexts, size_t n, uint8_t* bytes) {
    for (size_t lane = n; lane > 0;) {
      uint32_t& x = states_[--lane];
      const DecoderEntry entry = entries_[contexts[lane] * kScale + x % kScale];
      bytes[lane] = static_cast<uint8_t>(entry);
      x = ((entry >> 8) % kScale + 1) * (x >> kScaleBits) + (entry >> 20);
      if (x >= kLeastState) continue;
      if (word_ == end_) return false;
      x = x << kWordBits | LoadAs<uint16_t>(word_);
      word_ += kWordBytes;
    }
    return true;
  }

  // The whole rows for which there are surely words enough. Returns where they end.
  template <bool kHasContexts>
  size_t DecodeRows(uint8_t* HWY_RESTRICT bytes, size_t n) {
    static const Ranks ranks;
    const U32 d;
    const auto scale_mask = hn::Set(d, kScale - 1);
    const uint8_t* word = word_;
    HWY_ALIGN uint8_t contexts[kStates];
    Words x[kVectors];
    for (size_t v = 0; v < kVectors; ++v) x[v] = hn::Load(d, states_ + v * kLanes);
    size_t i = 0;
    for (; i + kStates <= n; i += kStates) {
      if (end_ - word < static_cast<ptrdiff_t>(kStates * kWordBytes)) break;
      if (kHasContexts) WriteContexts(bytes, i / kStates, contexts);
      for (size_t v = kVectors; v-- > 0;) {
        auto place = hn::And(x[v], scale_mask);
        if (kHasContexts) {
          const auto context = hn::PromoteTo(d, hn::LoadU(U8(), contexts + v * kLanes));
          place = hn::Add(place, hn::ShiftLeft<kScaleBits>(context));
        }
        const auto entry = hn::GatherIndex(d, entries_, hn::BitCast(I32(), place));
        const auto byte = hn::And(entry, hn::Set(d, 0xFF));
        hn::StoreU(hn::DemoteTo(U8(), hn::BitCast(I32(), byte)), U8(), bytes + i + v * kLanes);
        const auto f = hn::Add(hn::And(hn::ShiftRight<8>(entry), scale_mask), hn::Set(d, 1));
        x[v] = WithWords(
            hn::Add(hn::Mul(f, hn::ShiftRight<kScaleBits>(x[v])), hn::ShiftRight<20>(entry)), ranks,
            &word);
      }
    }
    for (size_t v = 0; v < kVectors; ++v) hn::Store(x[v], d, states_ + v * kLanes);
    word_ = word;
    return i;
  }

  // The states, those that are too low with a word more each, the last one's first.
  static HWY_INLINE Words WithWords(Words x, const Ranks& ranks, const uint8_t** word) {
    const U32 d;
    const auto is_low = hn::Eq(hn::ShiftRight<15>(x), hn::Zero(d));
    const auto words = hn::PromoteTo(d, hn::LoadU(U16(), reinterpret_cast<const uint16_t*>(*word)));
    const auto own = hn::TableLookupLanes(words, hn::IndicesFromVec(d, RanksIn(is_low, ranks)));
    *word += hn::CountTrue(d, is_low) * kWordBytes;
    return hn::IfThenElse(is_low, hn::Or(hn::ShiftLeft<kWordBits>(x), own), x);
  }

  const RansModel& model_;
  const DecoderEntry* const entries_;
  HWY_ALIGN uint32_t states_[kStates];
  const uint8_t* word_;
  const uint8_t* const end_;
};

const char* DecodeImpl(const RansModel& model, const DecoderEntry* entries, const uint8_t* from,
                       const uint8_t* end, uint8_t* bytes, size_t n) {
  Decoder decoder(model, entries, from, end);
  return model.neighbours.count == 0 ? decoder.Decode<false>(bytes, n)
                                     : decoder.Decode<true>(bytes, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(SumsImpl);
HWY_EXPORT(EncodeImpl);
HWY_EXPORT(DecodeImpl);

namespace {

void FillEncoder(const Frequencies& table, EncoderEntry* entries) {
  uint32_t start = 0;
  for (int s = 0; s < kSymbols; ++s) {
    entries[s] = start << 16 | table[s];
    start += table[s];
  }
}

void FillDecoder(const Frequencies& table, DecoderEntry* entries) {
  for (uint32_t s = 0; s < kSymbols; ++s) {
    for (uint32_t place = 0; place < table[s]; ++place) {
      *entries++ = place << 20 | (table[s] - 1) << 8 | s;
    }
  }
}

}  // namespace

void SumsOfNeighbours(const Neighbours& neighbours, const uint8_t* bytes, size_t row,
                      size_t num_rows, uint8_t* sums) {
  HWY_DYNAMIC_DISPATCH(SumsImpl)(neighbours, bytes, row, num_rows, sums);
}

uint8_t* RansEncode(const uint8_t* bytes, size_t n, const uint8_t* contexts,
                    const Frequencies* tables, int num_tables, uint8_t* end) {
  static thread_local Scratch<EncoderEntry> memory;
  EncoderEntry* const entries = memory.Get(static_cast<size_t>(num_tables) * kSymbols);
  for (int t = 0; t < num_tables; ++t) FillEncoder(tables[t], entries + t * kSymbols);
  return HWY_DYNAMIC_DISPATCH(EncodeImpl)(bytes, n, contexts, entries, end);
}

const char* RansDecode(const RansModel& model, const uint8_t* from, const uint8_t* end,
                       uint8_t* bytes, size_t n) {
  static thread_local Scratch<DecoderEntry> memory;
  DecoderEntry* const entries = memory.Get(static_cast<size_t>(model.num_tables) * kScale);
  for (int t = 0; t < model.num_tables; ++t) FillDecoder(model.tables[t], entries + t * kScale);
  return HWY_DYNAMIC_DISPATCH(DecodeImpl)(model, entries, from, end, bytes, n);
}

}  // namespace thinwire
#endif  // HWY_ONCE
