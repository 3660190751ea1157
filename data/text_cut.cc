#include "data/text_cut.h"

#include "data/unicode.h"

namespace thinwire {
namespace {

// Returns whether the character that ends at text[end] is a letter or a number.
bool IsWordEnd(std::string_view text, size_t end) {
  const CharacterClass kind = CharacterBefore(text, end).kind;
  return kind == CharacterClass::kLetter || kind == CharacterClass::kNumber;
}

}  // namespace

size_t LastLineEnd(std::string_view text) {
  for (size_t at = text.size(); at > 1;) {
    --at;
    if ((text[at] == '\n' || text[at] == '\r') && IsWordEnd(text, at)) return at;
  }
  return 0;
}

}  // namespace thinwire
