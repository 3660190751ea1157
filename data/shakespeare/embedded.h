// Tiny Shakespeare, made part of the program when it is built.
#pragma once

#include <string_view>

namespace thinwire {

// One zstd frame. Static.
std::string_view CompressedShakespeare();

}  // namespace thinwire
