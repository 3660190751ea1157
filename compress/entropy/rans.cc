#include "compress/entropy/rans.h"

#include <algorithm>

#include "compress/bytes.h"
#include "compress/scratch.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/entropy/rans.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include "compress/entropy/rans_rows-inl.h"

#ifndef THINWIRE_RANS_ENCODER_ENTRY
#define THINWIRE_RANS_ENCODER_ENTRY
namespace thinwire {

// Table entry of a byte: its frequency (16 bits), and the sum of the frequencies before it (16
// bits).
using EncoderEntry = uint32_t;

// Shift of the test for a full state: a state of at least 2^19 times the byte's frequency would not
// stay below 2^31 with the byte in it.
constexpr int kFullBits = 31 - kScaleBits;

}  // namespace thinwire
#endif

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

void SumsImpl(const Neighbours& neighbours, const uint8_t* bytes, size_t row, size_t num_rows,
              uint8_t* sums) {
  for (size_t i = 0; i < num_rows; ++i) {
    for (size_t lane = 0; lane < kStates; lane += kRowLanes) {
      hn::StoreU(SumOfNeighbours(neighbours, bytes, row + i, lane), Row(),
                 sums + i * kStates + lane);
    }
  }
}

// Returns the lower words of the lanes in the set, at the end of the vector, the first lane's last.
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE hn::Vec<U16> LowerWords(Words x, hn::Mask<U32> set) {
  return hn::TruncateTo(U16(), hn::Reverse(U32(), hn::Compress(x, set)));
}
#else
// Shuffle table: for each set of lanes (as bits), which bytes of all lower words they are.
// Highway's Compress puts a table on the stack at each call.
struct LowerBytes {
  LowerBytes() {
    for (size_t set = 0; set < kSets; ++set) {
      uint8_t* to = of[set] + kBytes;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        if ((set >> lane & 1) == 0) continue;
        *--to = static_cast<uint8_t>(kWordBytes * lane + 1);
        *--to = static_cast<uint8_t>(kWordBytes * lane);
      }
    }
  }
  static_assert(kLanes <= 8, "a byte has all lanes");
  static constexpr size_t kSets = size_t{1} << kLanes, kBytes = kWordBytes * kLanes;
  HWY_ALIGN uint8_t of[kSets][kBytes] = {};
};

HWY_INLINE hn::Vec<U16> LowerWords(Words x, hn::Mask<U32> set) {
  static const LowerBytes bytes;
  const hn::Repartition<uint8_t, U16> d;
  HWY_ALIGN uint8_t bits[8] = {};
  hn::StoreMaskBits(U32(), set, bits);
  const auto words = hn::BitCast(d, hn::TruncateTo(U16(), x));
  return hn::BitCast(U16(), hn::TableLookupBytes(words, hn::LoadU(d, bytes.of[bits[0]])));
}
#endif

// Renormalises: removes the lower words from full states and writes them before `word`, the first
// lane's last. A state is full iff x >> 19 is at least f. A whole vector is stored, but `word`
// moves only over the words of full states.
HWY_INLINE Words WithoutWords(Words x, Words f, uint8_t** word) {
  const U32 d;
  const auto upper = hn::BitCast(I32(), hn::ShiftRight<kFullBits>(x));
  const auto most = hn::BitCast(I32(), hn::Sub(f, hn::Set(d, 1)));
  const auto full = hn::RebindMask(d, hn::Gt(upper, most));
  auto* const end = reinterpret_cast<uint16_t*>(*word);
  hn::StoreU(LowerWords(x, full), U16(), end - kLanes);
  *word -= hn::CountTrue(d, full) * kWordBytes;
  return hn::IfThenElse(full, hn::ShiftRight<kWordBits>(x), x);
}

// Returns the states with one more byte of frequency f, where `start` is the sum of the frequencies
// before it: (x / f << 12) + x % f + start. Requires x < f 2^19. The division is done in fp32,
// because vectors have none for integers.
HWY_INLINE Words WithByte(Words state, Words frequency, Words start) {
  const I32 d;
  const auto x = hn::BitCast(d, state), f = hn::BitCast(d, frequency);
  // Three roundings of 2^-24 each are less than the factor takes off, and that is less than one
  // unit of a quotient below 2^19. So the quotient is right or one too small.
  const auto less = hn::Mul(hn::ConvertTo(F32(), x), hn::Set(F32(), 1 - 0x1p-21f));
  const auto quotient = hn::ConvertTo(d, hn::Div(less, hn::ConvertTo(F32(), f)));
  const auto rest = hn::Sub(x, hn::Mul(quotient, f));
  const auto nearly =
      hn::Add(hn::ShiftLeft<kScaleBits>(quotient), hn::Add(rest, hn::BitCast(d, start)));
  // If it is too small, one more of the quotient (2^12 of the state) means f less of the rest.
  const auto one_more = hn::Add(nearly, hn::Sub(hn::Set(d, kScale), f));
  return hn::BitCast(U32(), hn::IfThenElse(hn::Lt(rest, f), nearly, one_more));
}

// Adds one byte to one state; for the last, incomplete row.
HWY_INLINE uint32_t WithByte(uint32_t x, EncoderEntry entry, uint8_t** word) {
  const uint32_t f = entry & 0xFFFF, start = entry >> 16;
  if (x >> kFullBits >= f) {
    *word -= kWordBytes;
    StoreAs(static_cast<uint16_t>(x), *word);
    x >>= kWordBits;
  }
  return (x / f << kScaleBits) + x % f + start;
}

// Table entries of the bytes of a row, each in its context.
struct RowEntries {
  Words frequencies[kVectors], starts[kVectors];
};

// Gathers the entries of the row that begins at byte `row`.
HWY_INLINE void Look(const EncoderEntry* entries, const RansSource& source, size_t row,
                     RowEntries* found) {
  const U32 d;
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) {
    const size_t at = row + v * kLanes;
    auto place = hn::PromoteTo(I32(), hn::LoadU(U8(), source.bytes + at));
    if (source.contexts != nullptr) {
      const auto context = hn::PromoteTo(I32(), hn::LoadU(U8(), source.contexts + at));
      place = hn::Add(place, hn::ShiftLeft<8>(context));
    }
    const auto entry = hn::GatherIndex(d, entries, place);
    found->frequencies[v] = hn::And(entry, hn::Set(d, 0xFFFF));
    found->starts[v] = hn::ShiftRight<16>(entry);
  }
}

// Encoder of one string: its states, and where its words begin. It codes bytes from the last row to
// the first and, within a row, from the first to the last. So words come out in the reverse of the
// order in which they are read; they are written before the end.
class Encoder {
 public:
  // Codes the incomplete row, if there is one.
  void Begin(const RansSource& source, const EncoderEntry* entries) {
    source_ = source;
    word_ = source.end;
    rows_ = source.n / kStates;
    std::fill_n(states_, kStates, kLeastState);
    for (size_t i = rows_ * kStates; i < source.n; ++i) {
      uint32_t& state = states_[i % kStates];
      const size_t context = source.contexts == nullptr ? 0 : source.contexts[i];
      state = WithByte(state, entries[context * kSymbols + source.bytes[i]], &word_);
    }
  }

  size_t rows() const { return rows_; }

  // Codes the last `rows` of the rows that are left, of kTogether strings. The strings' chains of
  // dependent operations are interleaved, so their latencies overlap.
  template <size_t kTogether>
  static void EncodeRows(const EncoderEntry* HWY_RESTRICT entries, size_t rows,
                         Encoder* HWY_RESTRICT encoders) {
    const U32 d;
    Words x[kTogether][kVectors];
    uint8_t* word[kTogether];
    for (size_t k = 0; k < kTogether; ++k) {
      for (size_t v = 0; v < kVectors; ++v) x[k][v] = hn::Load(d, encoders[k].states_ + v * kLanes);
      word[k] = encoders[k].word_;
    }
    RowEntries found[kTogether];
    for (size_t row = 1; row <= rows; ++row) {
      HWY_UNROLL(4)
      for (size_t k = 0; k < kTogether; ++k) {
        Look(entries, encoders[k].source_, (encoders[k].rows_ - row) * kStates, &found[k]);
      }
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        HWY_UNROLL(4)
        for (size_t k = 0; k < kTogether; ++k) {
          const auto f = found[k].frequencies[v];
          x[k][v] = WithByte(WithoutWords(x[k][v], f, &word[k]), f, found[k].starts[v]);
        }
      }
    }
    for (size_t k = 0; k < kTogether; ++k) {
      for (size_t v = 0; v < kVectors; ++v) hn::Store(x[k][v], d, encoders[k].states_ + v * kLanes);
      encoders[k].word_ = word[k];
      encoders[k].rows_ -= rows;
    }
  }

  // Writes the states before the words. Returns where they begin.
  uint8_t* Finish() const {
    uint8_t* const begin = word_ - kStatesBytes;
    for (size_t lane = 0; lane < kStates; ++lane) {
      StoreAs(states_[lane], begin + lane * kStateBytes);
    }
    return begin;
  }

 private:
  RansSource source_;
  HWY_ALIGN uint32_t states_[kStates];
  uint8_t* word_ = nullptr;
  size_t rows_ = 0;  // whole rows that are left
};

void EncodeImpl(const RansSource* sources, size_t count, const EncoderEntry* entries,
                uint8_t** begins) {
  Encoder encoders[kRansTogether];
  for (size_t first = 0; first < count; first += kRansTogether) {
    const size_t n = std::min(kRansTogether, count - first);
    size_t in_common = n < kRansTogether ? 0 : SIZE_MAX;
    for (size_t k = 0; k < n; ++k) {
      encoders[k].Begin(sources[first + k], entries);
      in_common = std::min(in_common, encoders[k].rows());
    }
    for (size_t k = 0; k < n; ++k) {
      Encoder::EncodeRows<1>(entries, encoders[k].rows() - in_common, &encoders[k]);
    }
    if (in_common > 0) Encoder::EncodeRows<kRansTogether>(entries, in_common, encoders);
    for (size_t k = 0; k < n; ++k) begins[first + k] = encoders[k].Finish();
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(SumsImpl);
HWY_EXPORT(EncodeImpl);

namespace {

void FillEncoder(const Frequencies& table, EncoderEntry* entries) {
  uint32_t start = 0;
  for (int s = 0; s < kSymbols; ++s) {
    entries[s] = start << 16 | table[s];
    start += table[s];
  }
}

}  // namespace

void SumsOfNeighbours(const Neighbours& neighbours, const uint8_t* bytes, size_t row,
                      size_t num_rows, uint8_t* sums) {
  HWY_DYNAMIC_DISPATCH(SumsImpl)(neighbours, bytes, row, num_rows, sums);
}

void RansEncode(const RansSource* sources, size_t count, const Frequencies* tables, int num_tables,
                uint8_t** begins) {
  static thread_local Scratch<EncoderEntry> memory;
  EncoderEntry* const entries = memory.Get(static_cast<size_t>(num_tables) * kSymbols);
  for (int t = 0; t < num_tables; ++t) FillEncoder(tables[t], entries + t * kSymbols);
  HWY_DYNAMIC_DISPATCH(EncodeImpl)(sources, count, entries, begins);
}

}  // namespace thinwire
#endif  // HWY_ONCE
