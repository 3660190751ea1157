// Cache of a text's token ids in a file, so that the next process need not encode it again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/tokenizer.h"

namespace thinwire {

// Returns the name of the file with the ids of documents, without ".tokens": the SHA-256 of that of
// their text, of the vocabulary, and of several documents `begins` and what stands between them.
std::string TokenCacheName(const std::string& text_sha256, const Tokenizer& tokenizer,
                           absl::Span<const size_t> begins);

// Returns the ids of the documents in `text` (Tokenizer::EncodeDocuments). They are read from the
// file of that name in `folder` if it is intact, and written there otherwise (token_file.h). If no
// file can be used, only time is lost. Errors are the tokenizer's.
absl::StatusOr<std::vector<int32_t>> CachedTokens(const std::string& folder,
                                                  const Tokenizer& tokenizer, std::string_view text,
                                                  absl::Span<const size_t> begins = {});

}  // namespace thinwire
