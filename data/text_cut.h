// Places at which a text may be divided before it is encoded.
#pragma once

#include <cstddef>
#include <string_view>

namespace thinwire {

// Returns the last place, behind the first byte, where a line ends behind a letter or a number; 0
// if there is none. A tokenizer that may_be_cut() gives a text the ids of the two parts there.
size_t LastCut(std::string_view text);

}  // namespace thinwire
