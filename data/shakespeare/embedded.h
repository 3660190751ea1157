// Tiny Shakespeare, embedded in the program at build time.
#pragma once

#include <string_view>

namespace thinwire {

// Returns the text as one zstd frame; static.
std::string_view CompressedShakespeare();

}  // namespace thinwire
