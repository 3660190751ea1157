// Text from elsewhere (a peer, a file, a library) as a terminal may be shown it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thinwire {

inline constexpr size_t kPrintedBytes = 4096;  // of one text; what is longer is cut

// `text` as UTF-8 without control characters: those of C0 but line breaks, DEL, those of C1, and
// bytes that are no UTF-8 become escapes like "\x1b". A longer text than kPrintedBytes is cut there
// at a character's end, and the last words say how many bytes are missing.
std::string Printable(std::string_view text);

// The same as one line: line breaks become "\n".
std::string PrintableLine(std::string_view text);

}  // namespace thinwire
