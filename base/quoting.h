// Quoting of text for other formats.
#pragma once

#include <string>
#include <string_view>

namespace thinwire {

// Returns text for XML and HTML, also for quoted attributes, with the reserved characters replaced.
std::string MarkupText(std::string_view text);

// Returns a field of a CSV line (RFC 4180), quoted if necessary.
std::string CsvField(std::string_view text);

}  // namespace thinwire
