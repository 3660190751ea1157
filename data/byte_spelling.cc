#include "data/byte_spelling.h"

#include <array>
#include <cstdint>

#include "data/unicode.h"

namespace thinwire {
namespace {

constexpr uint32_t kBytes = 256;
constexpr uint32_t kSpellingEnd = 2 * kBytes;

// Returns whether a byte is spelled by itself, as printable characters of Latin-1 are. The other
// bytes, in order, are spelled U+0100, U+0101 and so on.
bool IsSpelledByItself(uint32_t byte) {
  return ('!' <= byte && byte <= '~') || (0xA1 <= byte && byte <= 0xAC) || byte >= 0xAE;
}

using ByteOfCharacter = std::array<int, kSpellingEnd>;  // -1: the character spells none

ByteOfCharacter MakeSpelling() {
  ByteOfCharacter byte_of;
  byte_of.fill(-1);
  uint32_t next = kBytes;
  for (uint32_t byte = 0; byte < kBytes; ++byte) {
    byte_of[IsSpelledByItself(byte) ? byte : next++] = static_cast<int>(byte);
  }
  return byte_of;
}

}  // namespace

std::optional<std::string> BytesSpelled(std::string_view spelled) {
  static const ByteOfCharacter byte_of = MakeSpelling();
  std::string bytes;
  for (size_t at = 0; at < spelled.size();) {
    const Character character = CharacterAt(spelled, at);
    if (character.code >= kSpellingEnd) return std::nullopt;
    const int byte = byte_of[character.code];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    at += character.bytes;
  }
  return bytes;
}

}  // namespace thinwire
