#include "data/bert_characters.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace thinwire {
namespace {

constexpr auto kRemoved = BertCharacter::kRemoved;
constexpr auto kSpace = BertCharacter::kSpace;
constexpr auto kPunctuation = BertCharacter::kPunctuation;
constexpr auto kIdeograph = BertCharacter::kIdeograph;

struct Range {
  uint32_t first, last;
  BertCharacter kind;
};

// `to` is what `first` becomes. Each further character becomes the one behind that, or also
// nothing.
struct Simpler {
  uint32_t first, last;
  SimplerCharacters to;
};

#include "data/bert_characters.inc"

// Returns the row of `table` that has the code; null: none.
template <typename Row, size_t rows>
const Row* Find(const Row (&table)[rows], uint32_t code) {
  const Row* behind =
      std::upper_bound(std::begin(table), std::end(table), code,
                       [](uint32_t wanted, const Row& row) { return wanted < row.first; });
  if (behind == std::begin(table) || code > std::prev(behind)->last) return nullptr;
  return std::prev(behind);
}

// Hangul syllables are composed of a consonant, a vowel and perhaps another consonant (Unicode,
// section 3.12).
constexpr uint32_t kFirstSyllable = 0xAC00, kLastSyllable = 0xD7A3;
constexpr uint32_t kConsonants = 0x1100, kVowels = 0x1161, kFinals = 0x11A7;
constexpr uint32_t kNumVowels = 21, kNumFinals = 28;

SimplerCharacters PartsOfSyllable(uint32_t code) {
  const uint32_t number = code - kFirstSyllable, final = number % kNumFinals;
  return {kConsonants + number / (kNumVowels * kNumFinals),
          kVowels + number / kNumFinals % kNumVowels, final == 0 ? 0 : kFinals + final};
}

constexpr uint32_t kAsciiEnd = 0x80;

std::array<BertCharacter, kAsciiEnd> ClassesOfAscii() {
  std::array<BertCharacter, kAsciiEnd> classes;
  for (uint32_t code = 0; code < kAsciiEnd; ++code) {
    const Range* range = Find(kRanges, code);
    classes[code] = range == nullptr ? BertCharacter::kWord : range->kind;
  }
  return classes;
}

}  // namespace

BertCharacter BertClassOf(uint32_t code) {
  static const std::array<BertCharacter, kAsciiEnd> ascii = ClassesOfAscii();
  if (code < kAsciiEnd) return ascii[code];
  const Range* range = Find(kRanges, code);
  return range == nullptr ? BertCharacter::kWord : range->kind;
}

SimplerCharacters WithoutCaseAndAccents(uint32_t code) {
  if (code < kAsciiEnd) return {'A' <= code && code <= 'Z' ? code - 'A' + 'a' : code, 0, 0};
  if (kFirstSyllable <= code && code <= kLastSyllable) return PartsOfSyllable(code);
  const Simpler* simpler = Find(kSimpler, code);
  if (simpler == nullptr) return {code, 0, 0};
  SimplerCharacters to = simpler->to;
  if (to[0] != 0) to[0] += code - simpler->first;
  return to;
}

}  // namespace thinwire
