// `thinwire codecs`: every codec and every compensation, with parameters and defaults.
#pragma once

#include <string>

namespace thinwire {

enum class TextFormat { kMarkdown, kJson };

// Two tables, or {"codecs": [...], "feedback": [...]}.
std::string CodecList(TextFormat format);

}  // namespace thinwire
