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

// The lower words of the lanes that are in the set, at the end, the first one's last.
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE hn::Vec<U16> LowerWords(Words x, hn::Mask<U32> set) {
  return hn::TruncateTo(U16(), hn::Reverse(U32(), hn::Compress(x, set)));
}
#else
// For each set of lanes, as bits: which bytes of all lower words they are. Highway's Compress puts
// a table on the stack at each call.
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

// The states, those that are full without their lower words, which are written before `word`, the
// first lane's last.
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

// The states with a byte more, of frequency f and with so many before it; x < f 2^19.
HWY_INLINE Words WithByte(Words state, Words frequency, Words start) {
  const I32 d;
  const auto x = hn::BitCast(d, state), f = hn::BitCast(d, frequency);
  // Three roundings of 2^-24 each are less than what is taken off, and that is less than one of a
  // quotient below 2^19: it is right or one too small.
  const auto less = hn::Mul(hn::ConvertTo(F32(), x), hn::Set(F32(), 1 - 0x1p-21f));
  const auto quotient = hn::ConvertTo(d, hn::Div(less, hn::ConvertTo(F32(), f)));
  const auto rest = hn::Sub(x, hn::Mul(quotient, f));
  const auto nearly =
      hn::Add(hn::ShiftLeft<kScaleBits>(quotient), hn::Add(rest, hn::BitCast(d, start)));
  // One more of the quotient is f less of the rest.
  const auto one_more = hn::Add(nearly, hn::Sub(hn::Set(d, kScale), f));
  return hn::BitCast(U32(), hn::IfThenElse(hn::Lt(rest, f), nearly, one_more));
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

// The entries of the bytes of a row, each in its context.
struct RowEntries {
  Words frequencies[kVectors], starts[kVectors];
};

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
// Of one context: its table is in registers.
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

  // Two parts at a time, of which the upper two bits of a place choose.
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

// Codes bytes from the last row to the first and, in a row, from the first to the last, so that
// words come out in the reverse of the order in which they are read: before `end`.
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

// States in a vector of a decoder: AVX-512 spreads words over lanes from the first lane on, and so
// has the last state there, whose word comes first. Others look each lane's rank up.
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE Words FromStates(Words states) { return hn::Reverse(U32(), states); }
HWY_INLINE Words ToStates(Words x) { return hn::Reverse(U32(), x); }
HWY_INLINE hn::Vec<U8> FromStates(hn::Vec<U8> bytes) {
  return hn::TableLookupBytes(bytes, hn::Sub(hn::Set(U8(), 15), hn::Iota(U8(), 0)));
}
HWY_INLINE hn::Vec<U8> ToStates(hn::Vec<U8> bytes) { return FromStates(bytes); }

// A word for each lane that is in the set, the first ones.
HWY_INLINE Words Spread(Words words, hn::Mask<U32> set) {
  return Words{_mm512_maskz_expand_epi32(set.raw, words.raw)};
}
#else
HWY_INLINE Words FromStates(Words states) { return states; }
HWY_INLINE Words ToStates(Words x) { return x; }
HWY_INLINE hn::Vec<U8> FromStates(hn::Vec<U8> bytes) { return bytes; }
HWY_INLINE hn::Vec<U8> ToStates(hn::Vec<U8> bytes) { return bytes; }

// For each set of lanes, as bits: how many lanes above each are in it.
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

// A word for each lane that is in the set, the first one for the last lane.
HWY_INLINE Words Spread(Words words, hn::Mask<U32> set) {
  static_assert(kLanes <= 8, "a byte has all lanes");
  static const Ranks ranks;
  const U32 d;
  HWY_ALIGN uint8_t bits[8] = {};
  hn::StoreMaskBits(d, set, bits);
  const auto rank = hn::PromoteTo(d, hn::LoadU(U8(), ranks.of[bits[0]]));
  return hn::TableLookupLanes(words, hn::IndicesFromVec(d, rank));
}
#endif

// The states that a string was put into, and the words behind them.
class Decoder {
 public:
  void Begin(const RansPart& part) {
    part_ = part;
    word_ = part.from + kStatesBytes;
    row_ = 0;
    for (size_t lane = 0; lane < kStates; ++lane) {
      states_[lane] = LoadAs<uint32_t>(part.from + lane * kStateBytes);
    }
  }

  const char* Check() const {
    if (!std::all_of(states_, states_ + kStates, IsState)) return "a state below 2^15 or from 2^31";
    return (part_.end - word_) % kWordBytes != 0 ? "half a word" : nullptr;
  }

  // The whole rows of some strings for which there are surely words enough, as long as all have
  // one.
  template <bool kHasContexts, size_t kTogether>
  static void DecodeRows(const RansModel& model, const DecoderEntry* HWY_RESTRICT entries,
                         Decoder* HWY_RESTRICT decoders) {
    const U32 d;
    const auto scale_mask = hn::Set(d, kScale - 1);
    HWY_ALIGN uint8_t contexts[kTogether][kStates];
    Words x[kTogether][kVectors];
    const uint8_t* word[kTogether];
    const uint8_t* last[kTogether];  // from which on there may be too few words
    uint8_t* to[kTogether];
    size_t rows = SIZE_MAX;
    for (size_t k = 0; k < kTogether; ++k) {
      const Decoder& decoder = decoders[k];
      for (size_t v = 0; v < kVectors; ++v) {
        x[k][v] = FromStates(hn::Load(d, decoder.states_ + v * kLanes));
      }
      word[k] = decoder.word_;
      last[k] = decoder.part_.end - kStates * kWordBytes;
      to[k] = decoder.part_.bytes + decoder.row_ * kStates;
      rows = std::min(rows, decoder.part_.n / kStates - decoder.row_);
    }
    size_t row = 0;
    for (; row < rows; ++row) {
      bool has_words = true;
      for (size_t k = 0; k < kTogether; ++k) has_words &= word[k] <= last[k];
      if (!has_words) break;
      if (kHasContexts) {
        for (size_t k = 0; k < kTogether; ++k) {
          WriteContexts(model, decoders[k].part_.bytes, decoders[k].row_ + row, contexts[k]);
        }
      }
      HWY_UNROLL(4)
      for (size_t u = 0; u < kVectors; ++u) {
        const size_t v = kVectors - 1 - u;
        HWY_UNROLL(4)
        for (size_t k = 0; k < kTogether; ++k) {
          auto place = hn::And(x[k][v], scale_mask);
          if (kHasContexts) {
            const auto context =
                hn::PromoteTo(d, FromStates(hn::LoadU(U8(), contexts[k] + v * kLanes)));
            place = hn::Add(place, hn::ShiftLeft<kScaleBits>(context));
          }
          const auto entry = hn::GatherIndex(d, entries, hn::BitCast(I32(), place));
          hn::StoreU(ToStates(hn::TruncateTo(U8(), entry)), U8(),
                     to[k] + row * kStates + v * kLanes);
          const auto f = hn::Add(hn::And(hn::ShiftRight<8>(entry), scale_mask), hn::Set(d, 1));
          x[k][v] = WithWords(
              hn::Add(hn::Mul(f, hn::ShiftRight<kScaleBits>(x[k][v])), hn::ShiftRight<20>(entry)),
              &word[k]);
        }
      }
    }
    for (size_t k = 0; k < kTogether; ++k) {
      Decoder& decoder = decoders[k];
      for (size_t v = 0; v < kVectors; ++v) {
        hn::Store(ToStates(x[k][v]), d, decoder.states_ + v * kLanes);
      }
      decoder.word_ = word[k];
      decoder.row_ += row;
    }
  }

  // What is left.
  template <bool kHasContexts>
  const char* Finish(const RansModel& model, const DecoderEntry* entries) {
    DecodeRows<kHasContexts, 1>(model, entries, this);
    HWY_ALIGN uint8_t contexts[kStates] = {};
    for (size_t i = row_ * kStates; i < part_.n; i += kStates) {
      if (kHasContexts) WriteContexts(model, part_.bytes, i / kStates, contexts);
      if (!DecodeBytes(entries, contexts, std::min(kStates, part_.n - i), part_.bytes + i)) {
        return "words that are cut short";
      }
    }
    if (word_ != part_.end) return "words that are too many";
    const bool ends = std::all_of(states_, states_ + kStates,
                                  [](uint32_t state) { return state == kLeastState; });
    return ends ? nullptr : "states that do not end where they began";
  }

 private:
  static bool IsState(uint32_t x) { return x >= kLeastState && x < 1u << 31; }

  static HWY_INLINE void WriteContexts(const RansModel& model, const uint8_t* bytes, size_t row,
                                       uint8_t* contexts) {
    const auto of_sum = hn::LoadDup128(Row(), model.context_of_sum);
    for (size_t lane = 0; lane < kStates; lane += kRowLanes) {
      const auto sum = SumOfNeighbours(model.neighbours, bytes, row, lane);
      hn::Store(hn::TableLookupBytes(of_sum, sum), Row(), contexts + lane);
    }
  }

  // A byte of each of the first n states. False if words are missing.
  bool DecodeBytes(const DecoderEntry* entries, const uint8_t* contexts, size_t n, uint8_t* bytes) {
    for (size_t lane = n; lane > 0;) {
      uint32_t& x = states_[--lane];
      const DecoderEntry entry = entries[contexts[lane] * kScale + x % kScale];
      bytes[lane] = static_cast<uint8_t>(entry);
      x = ((entry >> 8) % kScale + 1) * (x >> kScaleBits) + (entry >> 20);
      if (x >= kLeastState) continue;
      if (word_ == part_.end) return false;
      x = x << kWordBits | LoadAs<uint16_t>(word_);
      word_ += kWordBytes;
    }
    return true;
  }

  // The states, those that are too low with a word more each, the last one's first.
  static HWY_INLINE Words WithWords(Words x, const uint8_t** word) {
    const U32 d;
    const auto is_low = hn::Lt(hn::BitCast(I32(), x), hn::Set(I32(), kLeastState));
    const auto set = hn::RebindMask(d, is_low);
    const auto words = hn::PromoteTo(d, hn::LoadU(U16(), reinterpret_cast<const uint16_t*>(*word)));
    *word += hn::CountTrue(d, set) * kWordBytes;
    return hn::IfThenElse(set, hn::Or(hn::ShiftLeft<kWordBits>(x), Spread(words, set)), x);
  }

  RansPart part_;
  HWY_ALIGN uint32_t states_[kStates];
  const uint8_t* word_ = nullptr;
  size_t row_ = 0;  // the first that is not decoded
};

template <bool kHasContexts>
const char* DecodeParts(const RansModel& model, const DecoderEntry* entries, const RansPart* parts,
                        size_t count) {
  constexpr size_t kTogether = 4;
  Decoder decoders[kTogether];
  for (size_t first = 0; first < count; first += kTogether) {
    const size_t n = std::min(kTogether, count - first);
    for (size_t k = 0; k < n; ++k) {
      decoders[k].Begin(parts[first + k]);
      if (const char* const wrong = decoders[k].Check()) return wrong;
    }
    if (n == kTogether) Decoder::DecodeRows<kHasContexts, kTogether>(model, entries, decoders);
    for (size_t k = 0; k < n; ++k) {
      if (const char* const wrong = decoders[k].Finish<kHasContexts>(model, entries)) return wrong;
    }
  }
  return nullptr;
}

const char* DecodeImpl(const RansModel& model, const DecoderEntry* entries, const RansPart* parts,
                       size_t count) {
  return model.neighbours.count == 0 ? DecodeParts<false>(model, entries, parts, count)
                                     : DecodeParts<true>(model, entries, parts, count);
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

const char* RansDecode(const RansModel& model, const RansPart* parts, size_t count) {
  static thread_local Scratch<DecoderEntry> memory;
  DecoderEntry* const entries = memory.Get(static_cast<size_t>(model.num_tables) * kScale);
  for (int t = 0; t < model.num_tables; ++t) FillDecoder(model.tables[t], entries + t * kScale);
  return HWY_DYNAMIC_DISPATCH(DecodeImpl)(model, entries, parts, count);
}

}  // namespace thinwire
#endif  // HWY_ONCE
