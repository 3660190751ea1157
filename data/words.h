// GPT-2 divides a text into words before it merges bytes (Radford et al., 2019): the matches of
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// one behind the other. A byte that is not part of valid UTF-8 is a character of its own, neither
// letter nor number nor white space.
#pragma once

#include <cstddef>
#include <string_view>

namespace thinwire {

// The end of the word that begins at text[at]; at < text.size(). Words leave nothing out.
size_t WordEnd(std::string_view text, size_t at);

}  // namespace thinwire
