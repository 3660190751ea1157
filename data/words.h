// Words into which GPT-2 divides a text before it merges bytes (Radford et al., 2019): consecutive
// matches of
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// A byte that is not part of valid UTF-8 is a character of its own, neither letter nor number nor
// white space.
#pragma once

#include <cstddef>
#include <string_view>

namespace thinwire {

// Returns the end of the word that begins at text[at], where at < text.size(). Every byte belongs
// to a word.
size_t WordEnd(std::string_view text, size_t at);

}  // namespace thinwire
