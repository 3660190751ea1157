// Token ids of a text as a file, for other programs and to look at: the ids alone, little-endian,
// of 16 bits, or of 32 where the vocabulary has more than 65536.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/tokenizer.h"

namespace thinwire {

// Opens the tokenizer of a folder, which may go by its name in the hub (base/hub_cache.h): that of
// a run's model (data/vocabulary_files.h), which says itself what special tokens mean, or a
// published one (data/hf_tokenizer.h), or GPT-2's files (data/bpe.h) where there is no other.
// Errors of these.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(const std::string& dir, Specials specials);

// Describes the tokenizer of a folder in lines: its rules, ids and special tokens. Errors of
// OpenTokenizer.
absl::StatusOr<std::string> DescribeTokenizer(const std::string& dir);

// Writes the ids of the text `path` to `out` and returns a line about them. A byte order mark at
// the head of the text does not count. Errors name the file: one that cannot be read or written, or
// is larger than 2 GiB; DataLoss one that only stands in for a text.
absl::StatusOr<std::string> EncodeFile(const std::string& path, const Tokenizer& tokenizer,
                                       const std::string& out);

// Returns the text of the ids in `path`. InvalidArgument names a file of broken ids, or the id and
// its place where it is none of the tokenizer's.
absl::StatusOr<std::string> DecodeFile(const std::string& path, const Tokenizer& tokenizer);

}  // namespace thinwire
