// Characters as BERT's tokenizer cleans them before it looks for words (Devlin et al., 2019). The
// tables are those of Hugging Face's tokenizers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace thinwire {

enum class BertCharacter : uint8_t {
  kWord,         // part of a word
  kRemoved,      // controls, U+FFFD, and others that no text shows
  kSpace,        // between words
  kPunctuation,  // word of its own
  kIdeograph,    // Chinese: word of its own
};

// Returns the class of a code point.
BertCharacter BertClassOf(uint32_t code);

// Characters that stand for one, as many as are not 0.
using SimplerCharacters = std::array<uint32_t, 3>;

// Returns a code point in lower case and without accents: its canonical decomposition (NFD) without
// nonspacing marks. Marks that stay keep the order that they had in the text.
SimplerCharacters WithoutCaseAndAccents(uint32_t code);

}  // namespace thinwire
