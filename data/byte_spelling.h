// The spelling of bytes in vocabularies of byte pairs, which are text: a printable character for
// each byte (Radford et al., 2019). A space is "Ġ" (U+0120) there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace thinwire {

// Returns the bytes of a token as it is spelled; nothing if a character stands for no byte.
std::optional<std::string> BytesSpelled(std::string_view spelled);

}  // namespace thinwire
