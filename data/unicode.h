// Characters of UTF-8 text, and the classes into which tokenizers divide them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace thinwire {

// Classes: Unicode's general categories L and N, its property White_Space, and the rest.
enum class CharacterClass : uint8_t { kLetter, kNumber, kSpace, kOther };

// Case of letters and marks, for patterns that divide words where it changes.
enum class Case : uint8_t {
  kNone,     // neither letter nor mark
  kCapital,  // general categories Lu and Lt
  kSmall,    // Ll
  kEither,   // Lm, Lo and M
};

constexpr uint32_t kNoCode = UINT32_MAX;
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";  // may begin a text

// A character of a text.
struct Character {
  uint32_t code = kNoCode;  // code point; kNoCode: a byte that is not part of valid UTF-8
  uint8_t bytes = 1;
  CharacterClass kind = CharacterClass::kOther;
};

// Returns the character that begins at text[at], where at < text.size(); `text` may be any bytes. A
// byte that begins no well-formed character is a character of its own, of one byte and class
// kOther. Well-formed is as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
Character CharacterAt(std::string_view text, size_t at);

// Returns the character that ends at text[end], where 0 < end <= text.size(), as CharacterAt finds
// it from its beginning on. A byte that ends no well-formed character is one of its own.
Character CharacterBefore(std::string_view text, size_t end);

Case CaseOf(const Character& character);

// Returns whether tokenizers that set digits apart do so with the character: it is a number, or one
// of those that Unicode has added since.
bool IsDigit(const Character& character);

// Returns the bytes of a byte order mark at the beginning of `text`, which is not one of its
// characters; 0 if there is none.
size_t ByteOrderMarkBytes(std::string_view text);

// Returns the bytes of `text` before an incomplete character at its end, which more bytes might
// complete; all bytes if there is none.
size_t WholeCharacters(std::string_view text);

// Returns a code point, U+0000 to U+10FFFF, as UTF-8.
std::string Utf8(uint32_t code);

}  // namespace thinwire
