#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace thinwire {
namespace {

constexpr uint32_t kDelete = 0x7f, kLastOfC1 = 0x9f;

bool Continues(char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; }

// Returns the bytes of the character at the beginning of `text`; 0 if it is not UTF-8 (RFC 3629:
// not overlong, no surrogate, not above U+10FFFF).
size_t CharacterBytes(std::string_view text, uint32_t* code) {
  const auto first = static_cast<uint8_t>(text[0]);
  *code = first;
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  *code = first & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (!Continues(text[i])) return 0;
    *code = *code << 6 | (static_cast<uint8_t>(text[i]) & 0x3f);
  }
  const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = *code >= 0xd800 && *code <= 0xdfff;
  return *code < least[bytes] || is_surrogate || *code > 0x10ffff ? 0 : bytes;
}

void AppendEscape(char byte, std::string* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto value = static_cast<uint8_t>(byte);
  *out += {'\\', 'x', kDigits[value >> 4], kDigits[value & 15]};
}

std::string Escaped(std::string_view text, bool one_line) {
  std::string out;
  while (!text.empty()) {
    uint32_t code = 0;
    const size_t bytes = CharacterBytes(text, &code);
    const bool is_control = code < ' ' || (code >= kDelete && code <= kLastOfC1);
    if (bytes > 0 && code == '\n') {
      out += one_line ? "\\n" : "\n";
    } else if (bytes > 0 && !is_control) {
      out += text.substr(0, bytes);
    } else {
      for (size_t i = 0; i < std::max<size_t>(bytes, 1); ++i) AppendEscape(text[i], &out);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

std::string Shown(std::string_view text, bool one_line) {
  if (text.size() <= kPrintedBytes) return Escaped(text, one_line);
  size_t kept = kPrintedBytes;
  for (int i = 0; i < 3 && Continues(text[kept]); ++i) --kept;
  return Escaped(text.substr(0, kept), one_line) + " … (" + std::to_string(text.size() - kept) +
         " more bytes)";
}

}  // namespace

std::string Printable(std::string_view text) { return Shown(text, /*one_line=*/false); }

std::string PrintableLine(std::string_view text) { return Shown(text, /*one_line=*/true); }

}  // namespace thinwire
