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

// Returns the ids of the documents in `text` (Tokenizer::EncodeDocuments). They are read from
// FOLDER/NAME.tokens if that is intact, and written there otherwise; NAME is the SHA-256 of text,
// vocabulary, and of several documents `begins` and what stands between them. If the folder cannot
// be used, only time is lost. Errors are the tokenizer's.
//
// The file is little-endian: "thinwire tokens\n", the number of ids (u64), their CRC-32C (u32), the
// ids (u32 each). It is written atomically.
absl::StatusOr<std::vector<int32_t>> CachedTokens(const std::string& folder,
                                                  const Tokenizer& tokenizer, std::string_view text,
                                                  absl::Span<const size_t> begins = {});

}  // namespace thinwire
