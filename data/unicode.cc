#include "data/unicode.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>

namespace thinwire {
namespace {

struct Range {
  uint32_t first, last;
  CharacterClass kind;
};

constexpr auto kLetter = CharacterClass::kLetter;
constexpr auto kNumber = CharacterClass::kNumber;
constexpr auto kSpace = CharacterClass::kSpace;
constexpr Range kRanges[] = {
#include "data/unicode_ranges.inc"
};

struct CaseRange {
  uint32_t first, last;
  Case kind;
};

constexpr auto kCapital = Case::kCapital;
constexpr auto kSmall = Case::kSmall;
constexpr auto kMark = Case::kEither;
constexpr CaseRange kCases[] = {
#include "data/unicode_cases.inc"
};

// Returns the kind of the range that has the code, else `otherwise`.
template <typename AnyRange, size_t size, typename Kind>
Kind KindIn(const AnyRange (&ranges)[size], uint32_t code, Kind otherwise) {
  const AnyRange* behind =
      std::upper_bound(std::begin(ranges), std::end(ranges), code,
                       [](uint32_t wanted, const AnyRange& range) { return wanted < range.first; });
  if (behind == std::begin(ranges) || code > std::prev(behind)->last) return otherwise;
  return std::prev(behind)->kind;
}

CharacterClass Search(uint32_t code) { return KindIn(kRanges, code, CharacterClass::kOther); }

constexpr uint32_t kAsciiEnd = 0x80;

std::array<CharacterClass, kAsciiEnd> AsciiClasses() {
  std::array<CharacterClass, kAsciiEnd> classes;
  for (uint32_t code = 0; code < kAsciiEnd; ++code) classes[code] = Search(code);
  return classes;
}

struct Lead {
  uint8_t bytes;        // of the character; 0: no character begins like this
  uint32_t bits;        // bits of the code in the first byte
  uint32_t least_code;  // smaller codes are overlong
};

// Decodes the first byte of a character of two to four bytes: its high bits tell their number.
Lead LeadOf(uint8_t byte) {
  if ((byte & 0xE0) == 0xC0) return {2, byte & 0x1Fu, 0x80};
  if ((byte & 0xF0) == 0xE0) return {3, byte & 0x0Fu, 0x800};
  if ((byte & 0xF8) == 0xF0) return {4, byte & 0x07u, 0x10000};
  return {0, 0, 0};
}

}  // namespace

Character CharacterAt(std::string_view text, size_t at) {
  static const std::array<CharacterClass, kAsciiEnd> ascii = AsciiClasses();
  assert(at < text.size());
  const auto first = static_cast<uint8_t>(text[at]);
  if (first < kAsciiEnd) return {first, 1, ascii[first]};
  const Lead lead = LeadOf(first);
  if (lead.bytes == 0 || text.size() - at < lead.bytes) return {};
  uint32_t code = lead.bits;
  for (uint8_t i = 1; i < lead.bytes; ++i) {
    const auto byte = static_cast<uint8_t>(text[at + i]);
    if ((byte & 0xC0) != 0x80) return {};
    code = code << 6 | (byte & 0x3Fu);
  }
  const bool is_surrogate = 0xD800 <= code && code <= 0xDFFF;
  if (code < lead.least_code || code > 0x10FFFF || is_surrogate) return {};
  return {code, lead.bytes, Search(code)};
}

Character CharacterBefore(std::string_view text, size_t end) {
  assert(0 < end && end <= text.size());
  constexpr size_t kMostBytes = 4;
  for (size_t bytes = 1; bytes <= kMostBytes && bytes <= end; ++bytes) {
    const Character character = CharacterAt(text, end - bytes);
    if (character.bytes == bytes && character.code != kNoCode) return character;
  }
  return {};
}

Case CaseOf(const Character& character) {
  const bool is_letter = character.kind == CharacterClass::kLetter;
  return KindIn(kCases, character.code, is_letter ? Case::kEither : Case::kNone);
}

bool IsDigit(const Character& character) {
  const uint32_t code = character.code;
  return character.kind == CharacterClass::kNumber || (0x11DE0 <= code && code <= 0x11DE9) ||
         (0x16FF4 <= code && code <= 0x16FF6);
}

size_t ByteOrderMarkBytes(std::string_view text) {
  const std::string_view mark = kByteOrderMark;
  return text.substr(0, mark.size()) == mark ? mark.size() : 0;
}

// Looks back for the last byte that is no continuation byte (10xxxxxx), as only the character that
// it begins can be incomplete.
size_t WholeCharacters(std::string_view text) {
  for (size_t behind = 1; behind < 4 && behind <= text.size(); ++behind) {
    const auto byte = static_cast<uint8_t>(text[text.size() - behind]);
    if ((byte & 0xC0) == 0x80) continue;
    return LeadOf(byte).bytes > behind ? text.size() - behind : text.size();
  }
  return text.size();
}

std::string Utf8(uint32_t code) {
  assert(code <= 0x10FFFF);
  const auto continued = [code](int shift) {
    return static_cast<char>(0x80 | (code >> shift & 0x3F));
  };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), continued(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), continued(6), continued(0)};
  return {static_cast<char>(0xF0 | code >> 18), continued(12), continued(6), continued(0)};
}

}  // namespace thinwire
