// Output of `thinwire codecs`: every codec and every kind of feedback, with parameters and
// defaults.
#pragma once

#include <string>

namespace thinwire {

enum class TextFormat { kMarkdown, kJson };

// Returns two tables, or {"codecs": [...], "feedback": [...]}.
std::string CodecList(TextFormat format);

}  // namespace thinwire
