// Text inside of other formats.
#pragma once

#include <string>
#include <string_view>

namespace thinwire {

// For XML and HTML, in text and in quoted attributes: what they reserve is replaced.
std::string MarkupText(std::string_view text);

// A field of a CSV line (RFC 4180), in quotes where it needs them.
std::string CsvField(std::string_view text);

}  // namespace thinwire
