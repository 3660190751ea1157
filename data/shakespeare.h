// Tiny Shakespeare (Karpathy, char-rnn), embedded in the program (data/shakespeare/). The first 90
// % of its characters are for training and the rest for test, as in nanoGPT. Small enough for a
// first language model without downloads.
#pragma once

#include "absl/status/statusor.h"
#include "data/text.h"

namespace thinwire {

absl::StatusOr<CorpusText> ReadShakespeare(const DataOptions& options);

// Returns the size by characters or by GPT-2's own vocabulary.
CorpusSize ShakespeareSize(TokenKind tokens);

}  // namespace thinwire
