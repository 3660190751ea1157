// The vocabulary of a text as files in a model's folder, so that whoever has the model can read its
// ids without the text.
//
//   vocabulary.json          {"tokens": "bpe", "end_of_text": "token"}, {"tokens": "bytes"}, or
//                            {"tokens": "characters", "characters": "\n !$&',-.3:;?ABC..."}, these
//                            in the order of their ids
//   vocab.json, merges.txt   bpe: under the names that Hugging Face's transformers read
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

inline constexpr char kVocabularyFile[] = "vocabulary.json";

// By name. Errors as of LoadTokenizer.
absl::StatusOr<std::map<std::string, std::string>> VocabularyFiles(const DataOptions& options);

// NotFound if `dir` has no vocabulary.json; else InvalidArgument or DataLoss names a file that is
// not as above.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenVocabulary(const std::string& dir);

// InvalidArgument if an id of the options' text stands for something else in `dir`, as far as files
// there tell: those above, or of other checkpoints vocab.json or tokenizer.json. Names the id, what
// it is here and there, and what to set. Errors of LoadTokenizer too.
absl::Status CheckVocabulary(const std::string& dir, const DataOptions& options);

}  // namespace thinwire
