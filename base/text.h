// Text for people and for other formats.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace thinwire {

// The valid name most similar to a mistyped one ("did you mean").

// Returns the least number of insertions, deletions and replacements that turn `a` into `b`.
size_t EditDistance(std::string_view a, std::string_view b);

// Returns the name in `names` with the smallest edit distance to `name`, the earlier one of equals;
// empty if there are no names.
std::string NearestName(std::string_view name, const std::vector<std::string>& names);

// Text from elsewhere (a peer, a file, a library) in a form that is safe for a terminal.
inline constexpr size_t kPrintedBytes = 4096;  // longest text; the rest is cut off

// Returns `text` as UTF-8 without control characters. Those of C0 except line breaks, DEL, those of
// C1, and bytes that are not UTF-8 become escapes like "\x1b". A text longer than kPrintedBytes is
// cut at the end of a character, and its last words say how many bytes are missing.
std::string Printable(std::string_view text);

// Does the same in one line: line breaks become "\n".
std::string PrintableLine(std::string_view text);

// Quoting of text for other formats.

// Returns text for XML and HTML, also for quoted attributes, with the reserved characters replaced.
std::string MarkupText(std::string_view text);

// Returns a field of a CSV line (RFC 4180), quoted if necessary.
std::string CsvField(std::string_view text);

}  // namespace thinwire
