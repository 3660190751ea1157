// WikiText-2 in the word-level version, whose rare words are <unk> (Merity et al., 2016).
// wiki.train.tokens is for training and wiki.valid.tokens for test, both unchanged.
#pragma once

#include "absl/status/statusor.h"
#include "data/text.h"

namespace thinwire {

// Reads the files from options.dir or the folder wikitext-2 in it. Errors: see LoadData.
absl::StatusOr<CorpusText> ReadWikitext2(const DataOptions& options);

// Returns the size of the official files by characters or by GPT-2's own vocabulary.
CorpusSize Wikitext2Size(TokenKind tokens);

}  // namespace thinwire
