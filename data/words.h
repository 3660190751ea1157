// Words into which tokenizers divide a text before they merge bytes: consecutive matches of a
// pattern. A byte that is not part of valid UTF-8 is a character of its own, neither letter nor
// number nor white space. All take time in proportion to the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace thinwire {

// Rules of division.
enum class WordRule : uint8_t {
  // GPT-2 (Radford et al., 2019):
  //   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  // Each number is a word, and what stands between two is divided by GPT-2's pattern. StarCoder and
  // SmolLM2 have it.
  kDigitsApart,
  // GPT-4 and Llama 3:
  //   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
  //   \s*[\r\n]+|\s+(?!\S)|\s+
  kThreeDigits,
  // Qwen 2: the same with \p{N} in place of \p{N}{1,3}.
  kOneDigit,
  // Mistral's tekken, where words end behind small letters that a capital follows. With the class
  // U of \p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}, and l of \p{Ll}\p{Lm}\p{Lo}\p{M}:
  //   [^\r\n\p{L}\p{N}]?[U]*[l]+|[^\r\n\p{L}\p{N}]?[U]+[l]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|
  //   \s*[\r\n]+|\s+(?!\S)|\s+
  kCased,
};

// Returns the end of the word that begins at text[at], where at < text.size() and a word ended at
// `at`. Every byte belongs to a word.
size_t WordEnd(WordRule rule, std::string_view text, size_t at);

}  // namespace thinwire
