// A vocabulary of word pieces for texts that have none (word_piece.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// Returns a vocab.txt of at most `size` tokens: the special ones, each character at the beginning
// of a word and within one, then what the most frequent pair of neighbouring tokens makes, again
// and again (Sennrich et al., 2016). It has fewer if no pair is left that occurs twice. Of equally
// frequent pairs that of the older tokens comes first, so equal texts give equal files. Only the
// 1,000 most frequent characters count. InvalidArgument if `size` has no room for these characters.
absl::StatusOr<std::string> LearnWordPieces(const std::vector<std::string_view>& texts,
                                            bool lowercase, int64_t size);

}  // namespace thinwire
