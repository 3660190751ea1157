// WikiText-2, the word-level version whose rare words are <unk> (Merity et al., 2016):
// wiki.train.tokens for training, wiki.valid.tokens for test, as they stand in the files.
#pragma once

#include "absl/status/statusor.h"
#include "data/text.h"

namespace thinwire {

// From options.dir or the folder wikitext-2 in it. Errors: see LoadData.
absl::StatusOr<CorpusText> ReadWikitext2(const DataOptions& options);

// Of the official files, by characters and by GPT-2's own vocabulary.
CorpusSize Wikitext2Size(TokenKind tokens);

}  // namespace thinwire
