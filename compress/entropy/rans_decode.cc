#include <algorithm>

#include "compress/bytes.h"
#include "compress/entropy/rans.h"
#include "compress/scratch.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/entropy/rans_decode.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include "compress/entropy/rans_rows-inl.h"

#ifndef THINWIRE_RANS_DECODER_ENTRY
#define THINWIRE_RANS_DECODER_ENTRY
namespace thinwire {

// Table entry for each value of a state's lower 12 bits: the byte (8 bits), its frequency less 1
// (12 bits), and the place within the frequency (12 bits).
using DecoderEntry = uint32_t;

}  // namespace thinwire
#endif

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// Conversions between the order of states and that of a decoder's lanes. AVX-512 spreads words over
// lanes from the first lane on. So its first lane has the last state, whose word comes first. Other
// targets look up each lane's rank.
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE Words FromStates(Words states) { return hn::Reverse(U32(), states); }
HWY_INLINE Words ToStates(Words x) { return hn::Reverse(U32(), x); }
HWY_INLINE hn::Vec<U8> FromStates(hn::Vec<U8> bytes) {
  return hn::TableLookupBytes(bytes, hn::Sub(hn::Set(U8(), 15), hn::Iota(U8(), 0)));
}
HWY_INLINE hn::Vec<U8> ToStates(hn::Vec<U8> bytes) { return FromStates(bytes); }

// Gives each lane in the set a word: the first words, in order.
HWY_INLINE Words Spread(Words words, hn::Mask<U32> set) {
  return Words{_mm512_maskz_expand_epi32(set.raw, words.raw)};
}
#else
HWY_INLINE Words FromStates(Words states) { return states; }
HWY_INLINE Words ToStates(Words x) { return x; }
HWY_INLINE hn::Vec<U8> FromStates(hn::Vec<U8> bytes) { return bytes; }
HWY_INLINE hn::Vec<U8> ToStates(hn::Vec<U8> bytes) { return bytes; }

// Ranks: for each set of lanes (as bits), how many lanes above each lane are in it.
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

// Gives each lane in the set a word, the first one to the last lane.
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

// Decoder of one string: its states, and the words behind them.
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

  // Decodes whole rows of kTogether strings, as long as all have one and surely enough words. The
  // strings' chains of dependent operations are interleaved, so their latencies overlap.
  template <bool kHasContexts, size_t kTogether>
  static void DecodeRows(const RansModel& model, const DecoderEntry* HWY_RESTRICT entries,
                         Decoder* HWY_RESTRICT decoders) {
    const U32 d;
    const auto scale_mask = hn::Set(d, kScale - 1);
    HWY_ALIGN uint8_t contexts[kTogether][kStates];
    Words x[kTogether][kVectors];
    const uint8_t* word[kTogether];
    const uint8_t* last[kTogether];  // behind this there may be too few words
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

  // Decodes the last rows, and checks that the string ends as it must.
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

  // Writes the context of each byte of a row.
  static HWY_INLINE void WriteContexts(const RansModel& model, const uint8_t* bytes, size_t row,
                                       uint8_t* contexts) {
    const auto of_sum = hn::LoadDup128(Row(), model.context_of_sum);
    for (size_t lane = 0; lane < kStates; lane += kRowLanes) {
      const auto sum = SumOfNeighbours(model.neighbours, bytes, row, lane);
      hn::Store(hn::TableLookupBytes(of_sum, sum), Row(), contexts + lane);
    }
  }

  // Decodes a byte of each of the first n states. Returns false if words are missing.
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

  // Returns the states after renormalisation: those that are too low take one word each, the last
  // state first.
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
  size_t row_ = 0;  // first row that is not decoded
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

HWY_EXPORT(DecodeImpl);

namespace {

void FillDecoder(const Frequencies& table, DecoderEntry* entries) {
  for (uint32_t s = 0; s < kSymbols; ++s) {
    for (uint32_t place = 0; place < table[s]; ++place) {
      *entries++ = place << 20 | (table[s] - 1) << 8 | s;
    }
  }
}

}  // namespace

const char* RansDecode(const RansModel& model, const RansPart* parts, size_t count) {
  static thread_local Scratch<DecoderEntry> memory;
  DecoderEntry* const entries = memory.Get(static_cast<size_t>(model.num_tables) * kScale);
  for (int t = 0; t < model.num_tables; ++t) FillDecoder(model.tables[t], entries + t * kScale);
  return HWY_DYNAMIC_DISPATCH(DecodeImpl)(model, entries, parts, count);
}

}  // namespace thinwire
#endif  // HWY_ONCE
