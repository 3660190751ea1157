// The ids of a text, kept in a file beside it so that the next process need not encode it again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "data/tokenizer.h"

namespace thinwire {

// The ids of `text`. They are taken from FOLDER/NAME.tokens, NAME being the SHA-256 of text and
// vocabulary, if that is whole, and are put there if it is not; a folder that does not serve
// changes nothing but time. Errors are the tokenizer's.
//
// The file, little-endian: "thinwire tokens\n", the number of ids (u64), their CRC-32C (u32), the
// ids (u32 each). It appears with all of it or not at all.
absl::StatusOr<std::vector<int32_t>> CachedTokens(const std::string& folder,
                                                  const Tokenizer& tokenizer,
                                                  std::string_view text);

}  // namespace thinwire
