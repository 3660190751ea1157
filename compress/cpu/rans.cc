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

// How a byte enters a state: x becomes x / f * 2^12 + x % f + start.
struct EncoderSymbol {
  uint64_t reciprocal;  // 2^44 / f, rounded up
  uint32_t frequency;   // f
  uint32_t start;       // the sum of the frequencies before it
};

// For each of 2^12 lower ends of a state: the byte, its frequency less 1 (12 bits), and the place
// within the frequency (12 bits).
using DecoderEntry = uint32_t;

}  // namespace thinwire
#endif

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using U8 = hn::FixedTag<uint8_t, kStates>;

HWY_INLINE hn::Vec<U8> SumOfNeighbours(const Neighbours& neighbours, const uint8_t* bytes,
                                       size_t row) {
  const U8 d;
  auto sum = hn::Zero(d);
  for (int k = 0; k < neighbours.count; ++k) {
    if (neighbours.rows[k] > row) continue;
    const auto code = hn::LoadU(d, bytes + (row - neighbours.rows[k]) * kStates);
    sum = hn::SaturatedAdd(sum, hn::AverageRound(code, hn::Zero(d)));
  }
  return hn::Min(sum, hn::Set(d, kSums - 1));
}

void SumsImpl(const Neighbours& neighbours, const uint8_t* bytes, size_t row, size_t num_rows,
              uint8_t* sums) {
  for (size_t i = 0; i < num_rows; ++i) {
    hn::StoreU(SumOfNeighbours(neighbours, bytes, row + i), U8(), sums + i * kStates);
  }
}

template <bool kHasContexts>
HWY_INLINE uint8_t* EncodeAll(const uint8_t* HWY_RESTRICT bytes, size_t n,
                              const uint8_t* HWY_RESTRICT contexts,
                              const EncoderSymbol* HWY_RESTRICT symbols, uint8_t* end) {
  uint32_t states[kStates];
  std::fill_n(states, kStates, kLeastState);
  uint8_t* to = end;
  const auto encode = [&](size_t i, size_t lane) HWY_ATTR {
    const EncoderSymbol& symbol = symbols[(kHasContexts ? contexts[i] * kSymbols : 0) + bytes[i]];
    uint32_t x = states[lane];
    // A state of f 2^20 or more would leave 32 bits: its lower word goes first. It is written in
    // any case and counts in this one, as a branch could not be foreseen.
    const uint32_t is_full = x >> (32 - kScaleBits) >= symbol.frequency ? 1 : 0;
    StoreAs(static_cast<uint16_t>(x), to - kWordBytes);
    to -= is_full * kWordBytes;
    x >>= is_full * kWordBits;
    // x < f 2^20 and the reciprocal is less than 1 too large, so that the quotient is exact and the
    // product stays below 2^64.
    const auto quotient = static_cast<uint32_t>(x * symbol.reciprocal >> 44);
    states[lane] = x + symbol.start + quotient * (kScale - symbol.frequency);
  };
  size_t i = n;
  for (; i % kStates != 0; --i) encode(i - 1, (i - 1) % kStates);
  for (; i > 0; i -= kStates) {
    for (size_t lane = kStates; lane > 0; --lane) encode(i - kStates + lane - 1, lane - 1);
  }
  to -= kStatesBytes;
  for (size_t lane = 0; lane < kStates; ++lane) StoreAs(states[lane], to + lane * kStateBytes);
  return to;
}

uint8_t* EncodeImpl(const uint8_t* bytes, size_t n, const uint8_t* contexts,
                    const EncoderSymbol* symbols, uint8_t* end) {
  return contexts == nullptr ? EncodeAll<false>(bytes, n, nullptr, symbols, end)
                             : EncodeAll<true>(bytes, n, contexts, symbols, end);
}

// The states that a string was put into, and the words behind them.
class Decoder {
 public:
  Decoder(const DecoderEntry* entries, const uint8_t* from, const uint8_t* end)
      : entries_(entries), word_(from + kStatesBytes), end_(end) {
    for (size_t lane = 0; lane < kStates; ++lane) {
      states_[lane] = LoadAs<uint32_t>(from + lane * kStateBytes);
    }
  }

  template <bool kHasContexts>
  const char* Decode(const RansModel& model, uint8_t* bytes, size_t n) {
    if (*std::min_element(states_, states_ + kStates) < kLeastState) return "a state below 2^16";
    if ((end_ - word_) % kWordBytes != 0) return "half a word";
    HWY_ALIGN uint8_t contexts[kStates] = {};
    for (size_t i = DecodeWhole<kHasContexts>(model, bytes, n); i < n; ++i) {
      const size_t lane = i % kStates;
      if (kHasContexts && lane == 0) ContextsOfRow(model, bytes, i / kStates, contexts);
      const DecoderEntry entry = EntryOf(states_[lane], contexts[lane]);
      bytes[i] = static_cast<uint8_t>(entry);
      uint32_t& x = states_[lane] = After(states_[lane], entry);
      if (x >= kLeastState) continue;
      if (word_ == end_) return "words that are cut short";
      x = x << kWordBits | LoadAs<uint16_t>(word_);
      word_ += kWordBytes;
    }
    if (word_ != end_) return "words that are too many";
    const bool ends = std::all_of(states_, states_ + kStates,
                                  [](uint32_t state) { return state == kLeastState; });
    return ends ? nullptr : "states that do not end where they began";
  }

 private:
  static HWY_INLINE void ContextsOfRow(const RansModel& model, const uint8_t* bytes, size_t row,
                                       uint8_t* contexts) {
    const auto sum = SumOfNeighbours(model.neighbours, bytes, row);
    const auto of_sum = hn::LoadU(U8(), model.context_of_sum);
    hn::Store(hn::TableLookupBytes(of_sum, sum), U8(), contexts);
  }
  HWY_INLINE DecoderEntry EntryOf(uint32_t x, size_t context) const {
    return entries_[context * kScale + x % kScale];
  }
  static HWY_INLINE uint32_t After(uint32_t x, DecoderEntry entry) {
    return ((entry >> 8) % kScale + 1) * (x >> kScaleBits) + (entry >> 20);
  }

  // A byte of each state after the other, as long as there are words for all; returns how many.
  template <bool kHasContexts>
  HWY_INLINE size_t DecodeWhole(const RansModel& model, uint8_t* HWY_RESTRICT bytes, size_t n) {
    HWY_ALIGN uint32_t states[kStates];  // not in memory that `bytes` might be
    HWY_ALIGN uint8_t contexts[kStates] = {};
    std::copy_n(states_, kStates, states);
    const uint8_t* word = word_;
    size_t i = 0;
    for (; i + kStates <= n && end_ - word >= static_cast<ptrdiff_t>(kStates * kWordBytes);
         i += kStates) {
      if (kHasContexts) ContextsOfRow(model, bytes, i / kStates, contexts);
      for (size_t lane = 0; lane < kStates; ++lane) {
        const DecoderEntry entry = EntryOf(states[lane], kHasContexts ? contexts[lane] : 0);
        bytes[i + lane] = static_cast<uint8_t>(entry);
        const uint32_t x = After(states[lane], entry);
        // Whether it takes a word could not be foreseen: as in encoding no branch.
        const uint32_t is_low = x < kLeastState ? 1 : 0;
        states[lane] = x << (is_low * kWordBits) | (LoadAs<uint16_t>(word) & (0 - is_low));
        word += is_low * kWordBytes;
      }
    }
    std::copy_n(states, kStates, states_);
    word_ = word;
    return i;
  }

  const DecoderEntry* const entries_;
  uint32_t states_[kStates];
  const uint8_t* word_;
  const uint8_t* const end_;
};

const char* DecodeImpl(const RansModel& model, const DecoderEntry* entries, const uint8_t* from,
                       const uint8_t* end, uint8_t* bytes, size_t n) {
  Decoder decoder(entries, from, end);
  return model.neighbours.count == 0 ? decoder.Decode<false>(model, bytes, n)
                                     : decoder.Decode<true>(model, bytes, n);
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

void FillEncoder(const Frequencies& table, EncoderSymbol* symbols) {
  uint32_t start = 0;
  for (int s = 0; s < kSymbols; ++s) {
    if (table[s] == 0) continue;
    const uint64_t f = table[s];
    symbols[s] = {((uint64_t{1} << 44) + f - 1) / f, table[s], start};
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
  static thread_local Scratch<EncoderSymbol> memory;
  EncoderSymbol* const symbols = memory.Get(static_cast<size_t>(num_tables) * kSymbols);
  for (int t = 0; t < num_tables; ++t) FillEncoder(tables[t], symbols + t * kSymbols);
  return HWY_DYNAMIC_DISPATCH(EncodeImpl)(bytes, n, contexts, symbols, end);
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
