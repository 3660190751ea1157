// Rules by which a tokenizer prepares a text for its merges: its normalizer and its pre-tokenizer,
// as tokenizer.json spells them. Each known pair of these has rules of its own here, in place of an
// interpreter of its patterns: ids then depend on no library's tables, and no text takes more than
// O(n log n).
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "data/words.h"
#include "nlohmann/json_fwd.hpp"

namespace thinwire {

// Units of a text that become tokens before any merge.
enum class Units : uint8_t {
  kBytes,       // bytes; words are merged apart
  kCharacters,  // characters, as SentencePiece has them, with "▁" for spaces; bytes of unknown ones
};

// Where "▁" is put in front of a text, or of a part of it that stands behind an added token.
enum class Prefix : uint8_t {
  kNone,
  kAlways,  // of each part
  kFirst,   // of the part that begins the text, unless it begins with a space; by the pre-tokenizer
};

// Rules of a tokenizer.
struct TextRules {
  const char* name = "";  // models that have them, for messages
  Units units = Units::kBytes;
  bool composes = false;             // characters are composed first (normal_form.h)
  WordRule words = WordRule::kGpt2;  // kBytes
  Prefix prefix = Prefix::kNone;     // kCharacters
};

// Returns the rules of a tokenizer.json's `normalizer` and `pre_tokenizer`. InvalidArgument prints
// both, and which are known.
absl::StatusOr<TextRules> RulesOf(const nlohmann::json& normalizer,
                                  const nlohmann::json& pre_tokenizer);

}  // namespace thinwire
