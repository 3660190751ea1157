// The tokenizer of a model's folder, as Hugging Face's transformers keep it: tokenizer.json, and
// what other files there say of its tokens.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/tokenizer_json.h"

namespace thinwire {

inline constexpr char kTokenizerFile[] = "tokenizer.json";
inline constexpr char kGenerationConfig[] = "generation_config.json";

// Contents of a folder.
struct HfFiles {
  // Contents of tokenizer.json, of the files that transformers read with it and of
  // generation_config.json, by name, as far as they are there.
  std::map<std::string, std::string> contents;
  TokenizerJson tokenizer;
  std::optional<int32_t> begin_of_text;  // token in front of a text
  std::vector<int32_t> ends_of_text;     // tokens that end a text, the first of them the usual one
};

// Reads the files of a folder.
//
// The token in front of texts is the one of tokenizer.json's post-processor, if it has one. In
// tokenizer_config.json, add_bos_token: true puts `bos_token` there and false none. Tokens that end
// a text are that of tokenizer_config.json and then those of generation_config.json, or of
// config.json where the latter has none. Of these, ids that the tokenizer lacks are left out if
// tokenizer_config.json names an end.
//
// NotFound names the folder and what to do with other files there. DataLoss names a file that only
// stands in for another. InvalidArgument names a file that is too large or is no tokenizer of byte
// pairs (tokenizer_json.h), and two files that differ about a token.
absl::StatusOr<HfFiles> ReadHfFiles(const std::string& dir);

}  // namespace thinwire
