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

// Tables of several contexts, in memory. Look gathers the entries of a row.
class Contexts {
 public:
  Contexts(const EncoderEntry* entries, const uint8_t* contexts)
      : entries_(entries), contexts_(contexts) {}

  HWY_INLINE void Look(const uint8_t* bytes, size_t row, RowEntries* found) const {
    const U32 d;
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = row + v * kLanes;
      auto place = hn::PromoteTo(I32(), hn::LoadU(U8(), bytes + at));
      if (contexts_ != nullptr) {
        const auto context = hn::PromoteTo(I32(), hn::LoadU(U8(), contexts_ + at));
        place = hn::Add(place, hn::ShiftLeft<8>(context));
      }
      const auto entry = hn::GatherIndex(d, entries_, place);
      found->frequencies[v] = hn::And(entry, hn::Set(d, 0xFFFF));
      found->starts[v] = hn::ShiftRight<16>(entry);
    }
  }

 private:
  const EncoderEntry* const entries_;
  const uint8_t* const contexts_;
};

#if HWY_TARGET <= HWY_AVX3
// Table of a single context, held in registers.
class OneContext {
 public:
  explicit OneContext(const EncoderEntry* entries) {
    HWY_ALIGN uint16_t frequencies[kSymbols], starts[kSymbols];
    for (int s = 0; s < kSymbols; ++s) {
      frequencies[s] = static_cast<uint16_t>(entries[s]);
      starts[s] = static_cast<uint16_t>(entries[s] >> 16);
    }
    for (int i = 0; i < kParts; ++i) {
      frequencies_[i] = hn::Load(Part(), frequencies + i * hn::MaxLanes(Part()));
      starts_[i] = hn::Load(Part(), starts + i * hn::MaxLanes(Part()));
    }
  }

  HWY_INLINE void Look(const uint8_t* bytes, size_t row, RowEntries* found) const {
    const auto places = hn::PromoteTo(Part(), hn::LoadU(hn::Rebind<uint8_t, Part>(), bytes + row));
    Split(Find(frequencies_, places), found->frequencies);
    Split(Find(starts_, places), found->starts);
  }

 private:
  using Part = hn::CappedTag<uint16_t, kStates>;
  static constexpr int kParts = kSymbols / kStates;

  // Looks up 32 words in 256. Each of four permutes looks in 64 entries by the lower six bits of a
  // place; the upper two bits choose among the four.
  static HWY_INLINE hn::Vec<Part> Find(const hn::Vec<Part>* parts, hn::Vec<Part> places) {
    const auto of_two = [&](int i) HWY_ATTR {
      return _mm512_permutex2var_epi16(parts[i].raw, places.raw, parts[i + 1].raw);
    };
    const auto odd = _mm512_test_epi16_mask(places.raw, _mm512_set1_epi16(64));
    const auto upper = _mm512_test_epi16_mask(places.raw, _mm512_set1_epi16(128));
    const auto a = _mm512_mask_mov_epi16(of_two(0), odd, of_two(2));
    const auto b = _mm512_mask_mov_epi16(of_two(4), odd, of_two(6));
    return hn::Vec<Part>{_mm512_mask_mov_epi16(a, upper, b)};
  }
  static HWY_INLINE void Split(hn::Vec<Part> v, Words* halves) {
    static_assert(kVectors == 2, "a row is two vectors of states");
    const hn::Half<Part> half;
    halves[0] = hn::PromoteTo(U32(), hn::LowerHalf(half, v));
    halves[1] = hn::PromoteTo(U32(), hn::UpperHalf(half, v));
  }

  hn::Vec<Part> frequencies_[kParts], starts_[kParts];
};
#endif

// Codes bytes from the last row to the first and, within a row, from the first to the last. So
// words come out in the reverse of the order in which they are read; they are written before `end`.
template <class Model>
HWY_INLINE uint8_t* EncodeRows(const uint8_t* bytes, size_t n, const Model& model,
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
  RowEntries found;
  for (size_t row = whole; row > 0;) {
    row -= kStates;
    model.Look(bytes, row, &found);
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const auto f = found.frequencies[v];
      x[v] = WithByte(WithoutWords(x[v], f, &word), f, found.starts[v]);
    }
  }
  for (size_t v = 0; v < kVectors; ++v) hn::Store(x[v], d, states + v * kLanes);
  uint8_t* const begin = word - kStatesBytes;
  for (size_t lane = 0; lane < kStates; ++lane) {
    StoreAs(states[lane], begin + lane * kStateBytes);
  }
  return begin;
}

uint8_t* EncodeImpl(const uint8_t* bytes, size_t n, const uint8_t* contexts,
                    const EncoderEntry* entries, uint8_t* end) {
#if HWY_TARGET <= HWY_AVX3
  if (contexts == nullptr) return EncodeRows(bytes, n, OneContext(entries), entries, end);
#endif
  return EncodeRows(bytes, n, Contexts(entries, contexts), entries, end);
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

uint8_t* RansEncode(const uint8_t* bytes, size_t n, const uint8_t* contexts,
                    const Frequencies* tables, int num_tables, uint8_t* end) {
  static thread_local Scratch<EncoderEntry> memory;
  EncoderEntry* const entries = memory.Get(static_cast<size_t>(num_tables) * kSymbols);
  for (int t = 0; t < num_tables; ++t) FillEncoder(tables[t], entries + t * kSymbols);
  return HWY_DYNAMIC_DISPATCH(EncodeImpl)(bytes, n, contexts, entries, end);
}

}  // namespace thinwire
#endif  // HWY_ONCE
