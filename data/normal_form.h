// Unicode's normal form C (UAX 15): characters that stand for a letter and its marks replace these
// where Unicode has one. Tokenizers of Qwen's family read texts in it. The tables are those of
// Hugging Face's tokenizers, so that ids agree on every machine.
#pragma once

#include <string>
#include <string_view>

namespace thinwire {

// Returns `text` in normal form C. It is `text` itself if that is in this form already, otherwise
// a view of *buffer, which is overwritten. Bytes that are not UTF-8 stay as they are. Takes
// O(n log n) for n marks in a row, O(n) otherwise.
std::string_view Composed(std::string_view text, std::string* buffer);

}  // namespace thinwire
