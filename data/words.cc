#include "data/words.h"

#include "data/unicode.h"

namespace thinwire {
namespace {

// Returns the bytes of an English contraction at the beginning of `text`; 0 if there is none.
size_t ContractionBytes(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.substr(0, ending.size()) == ending) return ending.size();
  }
  return 0;
}

// Returns the end of the run of characters of class `kind` that begins at `at`.
size_t RunEnd(std::string_view text, size_t at, CharacterClass kind) {
  while (at < text.size()) {
    const Character character = CharacterAt(text, at);
    if (character.kind != kind) break;
    at += character.bytes;
  }
  return at;
}

// Returns the end of white space. It leaves its last character to the next word, unless that is its
// only one.
size_t SpaceEnd(std::string_view text, size_t at) {
  size_t last = at, end = at;
  while (end < text.size()) {
    const Character character = CharacterAt(text, end);
    if (character.kind != CharacterClass::kSpace) return last == at ? end : last;
    last = end;
    end += character.bytes;
  }
  return end;
}

}  // namespace

size_t WordEnd(std::string_view text, size_t at) {
  const size_t contraction = ContractionBytes(text.substr(at));
  if (contraction > 0) return at + contraction;
  const size_t body = text[at] == ' ' ? at + 1 : at;
  if (body < text.size()) {
    const CharacterClass kind = CharacterAt(text, body).kind;
    if (kind != CharacterClass::kSpace) return RunEnd(text, body, kind);
  }
  return SpaceEnd(text, at);
}

}  // namespace thinwire
