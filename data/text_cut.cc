#include "data/text_cut.h"

#include "data/unicode.h"

namespace thinwire {
namespace {

constexpr size_t kMostBytes = 4;  // of a character

// Returns whether the character that ends at text[end] is a letter or a number.
bool IsWordEnd(std::string_view text, size_t end) {
  for (size_t bytes = 1; bytes <= kMostBytes && bytes <= end; ++bytes) {
    const Character character = CharacterAt(text, end - bytes);
    if (character.bytes != bytes || character.code == kNoCode) continue;
    return character.kind == CharacterClass::kLetter || character.kind == CharacterClass::kNumber;
  }
  return false;
}

}  // namespace

size_t LastCut(std::string_view text) {
  for (size_t at = text.size(); at > 1;) {
    --at;
    if ((text[at] == '\n' || text[at] == '\r') && IsWordEnd(text, at)) return at;
  }
  return 0;
}

}  // namespace thinwire
