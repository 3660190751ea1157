// Text from elsewhere (a peer, a file, a library) in a form that is safe for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thinwire {

inline constexpr size_t kPrintedBytes = 4096;  // longest text; the rest is cut off

// Returns `text` as UTF-8 without control characters. Those of C0 except line breaks, DEL, those of
// C1, and bytes that are not UTF-8 become escapes like "\x1b". A text longer than kPrintedBytes is
// cut at the end of a character, and its last words say how many bytes are missing.
std::string Printable(std::string_view text);

// Does the same in one line: line breaks become "\n".
std::string PrintableLine(std::string_view text);

}  // namespace thinwire
