// `thinwire codecs`: every codec and every compensation, with parameters and defaults.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace thinwire {

enum class TextFormat { kMarkdown, kJson };

// Two tables, or {"codecs": [...], "feedback": [...]}.
absl::StatusOr<std::string> CodecList(TextFormat format);

}  // namespace thinwire
