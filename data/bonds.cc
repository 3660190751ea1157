#include "data/bonds.h"

#include "data/unicode.h"

namespace thinwire {

void Bonds::Add(std::string_view token) {
  uint32_t left = kNoCode;
  for (size_t at = 0; at < token.size();) {
    const Character character = CharacterAt(token, at);
    const uint32_t right = character.code;
    if (left < kAsciiEnd && right < kAsciiEnd) {
      ascii_.set(kAsciiEnd * left + right);
    } else if (left != kNoCode && right != kNoCode) {
      others_.insert(uint64_t{left} << 32 | right);
    }
    left = right;
    at += character.bytes;
  }
}

bool Bonds::Has(uint32_t left, uint32_t right) const {
  if (left < kAsciiEnd && right < kAsciiEnd) return ascii_[kAsciiEnd * left + right];
  return others_.contains(uint64_t{left} << 32 | right);
}

size_t Bonds::PartEnd(std::string_view text, size_t at) const {
  Character left = CharacterAt(text, at);
  size_t end = at + left.bytes;
  while (end < text.size()) {
    const Character right = CharacterAt(text, end);
    if (!Has(left.code, right.code)) break;
    end += right.bytes;
    left = right;
  }
  return end;
}

}  // namespace thinwire
