#include "data/cuts.h"

namespace thinwire {
namespace {

constexpr uint32_t kSpaceMark = 0x2581;  // "▁"

bool IsSpace(const Character& character) { return character.kind == CharacterClass::kSpace; }

uint32_t Marked(const Character& character) {
  return character.code == ' ' ? kSpaceMark : character.code;
}

}  // namespace

void Cuts::AddToken(std::string_view spelling, bool takes_spaces) {
  spelled_.Add(spelling);
  ends_.insert(CharacterBefore(spelling, spelling.size()).code);
  if (takes_spaces) takes_spaces_ = true;
}

// A text behind an added token may get a space in front, which the rest of one in a piece does not.
bool Cuts::IsCut(const Character& left, const Character& right, const Bonds& bonds) const {
  if (left.code == kNoCode || right.code == kNoCode) return false;
  if (takes_spaces_ && (IsSpace(left) || IsSpace(right))) return false;
  const uint32_t codes[2] = {Marked(left), Marked(right)};
  return !bonds.Has(codes[0], codes[1]) && !spelled_.Has(codes[0], codes[1]) &&
         !ends_.contains(codes[0]);
}

size_t Cuts::Last(std::string_view text, const Bonds& bonds) const {
  if (text.empty()) return 0;
  Character right = CharacterBefore(text, text.size());
  size_t at = text.size() - right.bytes;
  while (at > 0) {
    const Character left = CharacterBefore(text, at);
    if (IsCut(left, right, bonds)) return at;
    right = left;
    at -= left.bytes;
  }
  return 0;
}

}  // namespace thinwire
