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

// A vector of a row's bytes: those from `lane` on.
using Row = hn::CappedTag<uint8_t, kStates>;
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

// Codes bytes from the last row to the first and, in a row, from the first to the last, so that
// words come out in the reverse of the order in which they are read.
class Encoder {
 public:
  Encoder(const EncoderEntry* entries, uint16_t* words) : entries_(entries), word_(words) {
    std::fill_n(states_, kStates, kLeastState);
  }

  // A whole row of bytes. `contexts`, of these, may be null.
  HWY_INLINE void EncodeRow(const uint8_t* HWY_RESTRICT bytes,
                            const uint8_t* HWY_RESTRICT contexts) {
    const I32 d;
    for (size_t lane = 0; lane < kStates; lane += kLanes) {
      auto place = hn::PromoteTo(d, hn::LoadU(U8(), bytes + lane));
      if (contexts != nullptr) {
        const auto context = hn::PromoteTo(d, hn::LoadU(U8(), contexts + lane));
        place = hn::Add(place, hn::ShiftLeft<8>(context));
      }
      const auto entry = hn::GatherIndex(U32(), entries_, place);
      const auto f = hn::BitCast(d, hn::And(entry, hn::Set(U32(), 0xFFFF)));
      const auto start = hn::BitCast(d, hn::ShiftRight<16>(entry));
      auto x = hn::BitCast(d, hn::Load(U32(), states_ + lane));
      const auto is_full = hn::Gt(hn::ShiftRight<kFullBits>(x), hn::Sub(f, hn::Set(d, 1)));
      x = WithoutWord(x, is_full);
      // x < f 2^19, and the quotient as a float is off by less than one.
      auto quotient = hn::ConvertTo(d, hn::Div(hn::ConvertTo(F32(), x), hn::ConvertTo(F32(), f)));
      auto rest = hn::Sub(x, hn::Mul(quotient, f));
      const auto is_less = hn::Lt(rest, hn::Zero(d));
      const auto is_more = hn::Gt(rest, hn::Sub(f, hn::Set(d, 1)));
      // Masks are -1 where they are true.
      quotient =
          hn::Sub(hn::Add(quotient, hn::VecFromMask(d, is_less)), hn::VecFromMask(d, is_more));
      rest = hn::Sub(hn::Add(rest, hn::IfThenElseZero(is_less, f)), hn::IfThenElseZero(is_more, f));
      x = hn::Add(hn::ShiftLeft<kScaleBits>(quotient), hn::Add(rest, start));
      hn::Store(hn::BitCast(U32(), x), U32(), states_ + lane);
    }
  }

  // One byte, of the last row.
  void EncodeByte(size_t lane, uint8_t byte) {
    const uint32_t f = entries_[byte] & 0xFFFF, start = entries_[byte] >> 16;
    uint32_t& x = states_[lane];
    if (x >> kFullBits >= f) {
      *word_++ = static_cast<uint16_t>(x);
      x >>= kWordBits;
    }
    x = (x / f << kScaleBits) + x % f + start;
  }

  const uint32_t* states() const { return states_; }
  const uint16_t* words_end() const { return word_; }

 private:
  // Writes the lower words of the states that are full, and is their upper ones.
  HWY_INLINE hn::Vec<I32> WithoutWord(hn::Vec<I32> x, hn::Mask<I32> is_full) {
    const I32 d;
    const auto low = hn::Compress(hn::And(x, hn::Set(d, 0xFFFF)), is_full);
    hn::StoreU(hn::DemoteTo(U16(), low), U16(), word_);
    word_ += hn::CountTrue(d, is_full);
    return hn::IfThenElse(is_full, hn::ShiftRight<kWordBits>(x), x);
  }

  const EncoderEntry* const entries_;
  HWY_ALIGN uint32_t states_[kStates];
  uint16_t* word_;
};

uint8_t* EncodeImpl(const uint8_t* bytes, size_t n, const uint8_t* contexts,
                    const EncoderEntry* entries, uint16_t* words, uint8_t* end) {
  Encoder encoder(entries, words);
  const size_t whole = n / kStates * kStates;
  for (size_t i = whole; i < n; ++i) encoder.EncodeByte(i - whole, bytes[i]);
  for (size_t i = whole; i > 0; i -= kStates) {
    const size_t row = i - kStates;
    encoder.EncodeRow(bytes + row, contexts == nullptr ? nullptr : contexts + row);
  }
  uint8_t* to = end - (encoder.words_end() - words) * kWordBytes;
  uint8_t* const begin = to - kStatesBytes;
  for (const uint16_t* word = encoder.words_end(); word > words; to += kWordBytes) {
    StoreAs(*--word, to);
  }
  for (size_t lane = 0; lane < kStates; ++lane) {
    StoreAs(encoder.states()[lane], begin + lane * kStateBytes);
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
    for (size_t i = 0; i < n; i += kStates) {
      if (kHasContexts) WriteContexts(bytes, i / kStates, contexts);
      if (i + kStates <= n && end_ - word_ >= static_cast<ptrdiff_t>(kStates * kWordBytes)) {
        DecodeRow<kHasContexts>(contexts, bytes + i);
      } else if (!DecodeBytes(contexts, std::min(kStates, n - i), bytes + i)) {
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

  // The same of all states, for which there are words enough.
  template <bool kHasContexts>
  HWY_INLINE void DecodeRow(const uint8_t* HWY_RESTRICT contexts, uint8_t* HWY_RESTRICT bytes) {
    const U32 d;
    const auto scale_mask = hn::Set(d, kScale - 1);
    for (size_t lane = kStates; lane > 0;) {
      lane -= kLanes;
      auto x = hn::Load(d, states_ + lane);
      auto place = hn::And(x, scale_mask);
      if (kHasContexts) {
        const auto context = hn::PromoteTo(d, hn::LoadU(U8(), contexts + lane));
        place = hn::Add(place, hn::ShiftLeft<kScaleBits>(context));
      }
      const auto entry = hn::GatherIndex(d, entries_, hn::BitCast(I32(), place));
      const auto byte = hn::And(entry, hn::Set(d, 0xFF));
      hn::StoreU(hn::DemoteTo(U8(), hn::BitCast(I32(), byte)), U8(), bytes + lane);
      const auto f = hn::Add(hn::And(hn::ShiftRight<8>(entry), scale_mask), hn::Set(d, 1));
      x = hn::Add(hn::Mul(f, hn::ShiftRight<kScaleBits>(x)), hn::ShiftRight<20>(entry));
      hn::Store(WithWord(x), d, states_ + lane);
    }
  }

  // The states, those that are too low with a word more each, the last one's first.
  HWY_INLINE Words WithWord(Words x) {
    const U32 d;
    const auto is_low = hn::Eq(hn::ShiftRight<15>(x), hn::Zero(d));
    HWY_ALIGN uint8_t bits[8] = {};
    hn::StoreMaskBits(d, is_low, bits);
    HWY_ALIGN uint8_t ranks[16];
    std::copy_n(ranks_->of[bits[0]], 8, ranks);
    if (kLanes > 8) {
      std::copy_n(ranks_->of[bits[1]], 8, ranks + 8);
      // Above the lower eight lanes there are all of the upper ones.
      const uint64_t above = 0x0101010101010101u * __builtin_popcount(bits[1]);
      StoreAs(LoadAs<uint64_t>(ranks) + above, ranks);
    }
    const auto rank = hn::PromoteTo(d, hn::LoadU(U8(), ranks));
    const auto words = hn::PromoteTo(d, hn::LoadU(U16(), reinterpret_cast<const uint16_t*>(word_)));
    const auto word = hn::TableLookupLanes(words, hn::IndicesFromVec(d, rank));
    word_ += hn::CountTrue(d, is_low) * kWordBytes;
    return hn::IfThenElse(is_low, hn::Or(hn::ShiftLeft<kWordBits>(x), word), x);
  }

  const RansModel& model_;
  const DecoderEntry* const entries_;
  HWY_ALIGN uint32_t states_[kStates];
  const uint8_t* word_;
  const uint8_t* const end_;
  const Ranks* const ranks_ = [] {
    static const Ranks ranks;
    return &ranks;
  }();
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
  static thread_local Scratch<uint16_t> words;
  EncoderEntry* const entries = memory.Get(static_cast<size_t>(num_tables) * kSymbols);
  for (int t = 0; t < num_tables; ++t) FillEncoder(tables[t], entries + t * kSymbols);
  // A vector of words is written at a time.
  return HWY_DYNAMIC_DISPATCH(EncodeImpl)(bytes, n, contexts, entries,
                                          words.Get(RansBytes(n) / kWordBytes + kStates), end);
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
