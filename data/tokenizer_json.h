// Reading of tokenizer.json, in which Hugging Face's tokenizers keep a vocabulary of byte pairs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "data/text_rules.h"

namespace thinwire {

// A token that is found in a text before anything is merged.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool is_special = false;     // stands for what no text says, such as its end
  bool takes_left = false;     // white space in front of it is part of it
  bool takes_right = false;    // white space behind it is part of it
  bool is_normalized = false;  // it is looked for behind the normalizer, in its form
};

// Contents of the file.
struct TokenizerJson {
  // A merge of two tokens, by ids.
  struct Merge {
    int32_t left, right, product;
  };

  TextRules rules;
  std::vector<std::string> tokens;  // by id, as the file spells them
  std::vector<bool> is_piece;       // by id: whether the model has the token; else it is only added
  std::vector<Merge> merges;        // in order of rank
  bool ignores_merges = false;      // a word that is a token becomes it without merges
  // Token of a byte without a token; absent: such bytes are lost. Several in a row may be one.
  std::optional<int32_t> unknown;
  bool fuses_unknown = false;
  std::vector<AddedToken> added;
  std::optional<int32_t> beginning;  // id that the post-processor puts in front of a text
};

// Parses a file. InvalidArgument says what is met and what is wanted:
// - JSON that is broken or nested too deeply, or a model other than byte pairs;
// - rules that are not known (text_rules.h), or options that change ids in other ways;
// - an id that is absent or stands there twice;
// - of SentencePiece's kind, a byte of unknown characters without a token;
// - a merge that is repeated, or whose parts or product are no tokens.
absl::StatusOr<TokenizerJson> ParseTokenizerJson(std::string_view text);

// Returns the token that SentencePiece's kind has for a byte of an unknown character: "<0x0A>".
std::string ByteToken(uint8_t byte);

}  // namespace thinwire
