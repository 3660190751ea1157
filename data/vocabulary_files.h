// The vocabulary of a text as files in a model's folder, so that the ids can be read without the
// text.
//
//   vocabulary.json          {"tokens": "bpe", "end_of_text": "token"}, {"tokens": "bytes"},
//                            {"tokens": "word_piece", "lowercase": true},
//                            {"tokens": "hf", "specials": "text"}, or
//                            {"tokens": "characters", "characters": "\n !$&',-.3:;?ABC..."}, these
//                            in the order of their ids
//   vocab.json, merges.txt   bpe: under the names that Hugging Face's transformers read
//   vocab.txt                word_piece: likewise
//   tokenizer.json           hf: likewise, with what hf_files.h reads beside it; ends of texts that
//                            config.json alone names are then in generation_config.json
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

inline constexpr char kVocabularyFile[] = "vocabulary.json";

// Returns the files' contents by name; none where nothing but ids is known. Errors as in
// LoadTokenizer.
absl::StatusOr<std::map<std::string, std::string>> VocabularyFiles(const DataOptions& options);

// Reads these files. NotFound if `dir` has no vocabulary.json; otherwise InvalidArgument or
// DataLoss names a file that is not as described above.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenVocabulary(const std::string& dir);

// Returns InvalidArgument if an id of the options' text means something else in `dir`, as far as
// files there tell. Those are the files above, or vocab.txt, vocab.json or tokenizer.json of other
// checkpoints. The error names the id, both meanings and what to set. Errors of LoadTokenizer too.
absl::Status CheckVocabulary(const std::string& dir, const DataOptions& options);

}  // namespace thinwire
