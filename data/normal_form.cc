#include "data/normal_form.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "data/unicode.h"

namespace thinwire {
namespace {

struct MarkRange {
  uint32_t first, last;
  int combining_class;
};
struct Decomposition {
  uint32_t code;
  uint32_t parts[4];  // 0 behind the last
};
struct Composition {
  uint32_t first, second, product;
};
#include "data/normal_form.inc"

// Hangul syllables are numbered by their parts: a leading consonant, a vowel and perhaps a trailing
// consonant (The Unicode Standard, section 3.12).
constexpr uint32_t kLeads = 0x1100, kVowels = 0x1161, kTrails = 0x11A7, kSyllables = 0xAC00;
constexpr uint32_t kNumLeads = 19, kNumVowels = 21, kNumTrails = 28;  // trail 0 is none
constexpr uint32_t kNumSyllables = kNumLeads * kNumVowels * kNumTrails;

constexpr uint32_t kFirstMark = 0x300;  // characters before it never change

bool IsWithin(uint32_t code, uint32_t first, uint32_t count) {
  return first <= code && code < first + count;
}

// Returns the class by which marks behind a letter are put in order; 0: no mark.
int CombiningClass(uint32_t code) {
  const MarkRange* const found =
      std::lower_bound(std::begin(kMarks), std::end(kMarks), code,
                       [](const MarkRange& range, uint32_t wanted) { return range.last < wanted; });
  return found != std::end(kMarks) && found->first <= code ? found->combining_class : 0;
}

// Returns the character that two make; 0: none.
uint32_t ProductOf(uint32_t first, uint32_t second) {
  if (IsWithin(first, kLeads, kNumLeads) && IsWithin(second, kVowels, kNumVowels)) {
    return kSyllables + ((first - kLeads) * kNumVowels + second - kVowels) * kNumTrails;
  }
  if (IsWithin(first, kSyllables, kNumSyllables) && (first - kSyllables) % kNumTrails == 0 &&
      IsWithin(second, kTrails + 1, kNumTrails - 1)) {
    return first + second - kTrails;
  }
  const auto is_before = [](const Composition& a, const Composition& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  };
  const Composition wanted = {first, second, 0};
  const Composition* const found =
      std::lower_bound(std::begin(kCompositions), std::end(kCompositions), wanted, is_before);
  const bool is_there = found != std::end(kCompositions) && !is_before(wanted, *found);
  return is_there ? found->product : 0;
}

// Returns for each code point whether it may change, or be part of a change, in a text where the
// character before it stays.
std::vector<bool> Unstable() {
  std::vector<bool> unstable(0x110000);
  for (const Decomposition& each : kDecompositions) unstable[each.code] = true;
  for (const Composition& each : kCompositions) unstable[each.product] = false;
  for (const Composition& each : kCompositions) unstable[each.second] = true;
  for (const MarkRange& range : kMarks) {
    std::fill(unstable.begin() + range.first, unstable.begin() + range.last + 1, true);
  }
  const auto mark = [&](uint32_t first, uint32_t count) {
    std::fill_n(unstable.begin() + first, count, true);
  };
  mark(kVowels, kNumVowels);
  mark(kTrails + 1, kNumTrails - 1);
  return unstable;
}

bool IsUnstable(uint32_t code) {
  static const auto* const unstable = new std::vector<bool>(Unstable());
  return code >= kFirstMark && code != kNoCode && (*unstable)[code];
}

struct Part {
  uint32_t code;
  int combining_class;
};

void AppendPart(uint32_t code, std::vector<Part>* parts) {
  parts->push_back({code, CombiningClass(code)});
}

void Decompose(uint32_t code, std::vector<Part>* parts) {
  if (IsWithin(code, kSyllables, kNumSyllables)) {
    const uint32_t number = code - kSyllables;
    AppendPart(kLeads + number / (kNumVowels * kNumTrails), parts);
    AppendPart(kVowels + number / kNumTrails % kNumVowels, parts);
    if (number % kNumTrails > 0) AppendPart(kTrails + number % kNumTrails, parts);
    return;
  }
  const Decomposition* const found =
      std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), code,
                       [](const Decomposition& a, uint32_t wanted) { return a.code < wanted; });
  if (found == std::end(kDecompositions) || found->code != code) return AppendPart(code, parts);
  for (const uint32_t part : found->parts) {
    if (part != 0) AppendPart(part, parts);
  }
}

// Puts marks that stand in a row into the order of their classes.
void Order(std::vector<Part>* parts) {
  for (auto begin = parts->begin(); begin != parts->end();) {
    const auto end = std::find_if(begin, parts->end(),
                                  [](const Part& part) { return part.combining_class == 0; });
    std::stable_sort(begin, end, [](const Part& a, const Part& b) {
      return a.combining_class < b.combining_class;
    });
    begin = end == parts->end() ? end : end + 1;
  }
}

// Joins each part to the last letter unless a mark between them, of its class or a higher one,
// keeps them apart.
void Compose(std::vector<Part>* parts) {
  constexpr size_t kNone = SIZE_MAX;
  size_t letter = kNone, size = 0;
  for (const Part& part : *parts) {
    if (letter != kNone) {
      const bool is_next = letter + 1 == size;
      const bool is_free = is_next || (*parts)[size - 1].combining_class < part.combining_class;
      const uint32_t product = is_free ? ProductOf((*parts)[letter].code, part.code) : 0;
      if (product != 0) {
        (*parts)[letter].code = product;
        continue;
      }
    }
    if (part.combining_class == 0) letter = size;
    (*parts)[size++] = part;
  }
  parts->resize(size);
}

void AppendComposed(std::string_view text, std::string* to) {
  std::vector<Part> parts;
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    Decompose(character.code, &parts);
    at += character.bytes;
  }
  Order(&parts);
  Compose(&parts);
  for (const Part& part : parts) *to += Utf8(part.code);
}

}  // namespace

// Only what stands from a stable character to the next one, with unstable ones between, can change.
std::string_view Composed(std::string_view text, std::string* buffer) {
  buffer->clear();
  size_t copied = 0, stable = 0;
  for (size_t at = 0; at < text.size();) {
    Character character = CharacterAt(text, at);
    if (!IsUnstable(character.code)) {
      stable = character.code == kNoCode ? at + character.bytes : at;
      at += character.bytes;
      continue;
    }
    while (at < text.size() && IsUnstable(character.code)) {
      at += character.bytes;
      if (at < text.size()) character = CharacterAt(text, at);
    }
    buffer->append(text.substr(copied, stable - copied));
    AppendComposed(text.substr(stable, at - stable), buffer);
    copied = stable = at;
  }
  if (copied == 0) return text;
  buffer->append(text.substr(copied));
  return *buffer;
}

}  // namespace thinwire
