// Characters of UTF-8 text and the classes that tokenizers divide them into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace thinwire {

// Unicode's general categories L and N, and the property White_Space.
enum class CharacterClass : uint8_t { kLetter, kNumber, kSpace, kOther };

constexpr uint32_t kNoCode = UINT32_MAX;
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";  // at the head of a text

struct Character {
  uint32_t code = kNoCode;  // the code point; kNoCode: a byte that is not part of valid UTF-8
  uint8_t bytes = 1;
  CharacterClass kind = CharacterClass::kOther;
};

// The character that begins at text[at]; at < text.size(). Any bytes: one that begins no
// well-formed character (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF) is a
// character of its own, of one byte and class kOther.
Character CharacterAt(std::string_view text, size_t at);

// Bytes of a byte order mark at the head of `text`, which is no character of it; 0 where there is
// none.
size_t ByteOrderMarkBytes(std::string_view text);

// Bytes of `text` before a character at its end that more bytes might complete; all of them where
// there is none.
size_t WholeCharacters(std::string_view text);

// U+0000 to U+10FFFF as UTF-8.
std::string Utf8(uint32_t code);

}  // namespace thinwire
