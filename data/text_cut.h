// Places at which tokenizers that divide a text into words have no token across.
#pragma once

#include <cstddef>
#include <string_view>

namespace thinwire {

// Returns the last place, behind the first byte, where a line ends behind a letter or a number; 0
// if there is none.
size_t LastLineEnd(std::string_view text);

}  // namespace thinwire
