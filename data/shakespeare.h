// Tiny Shakespeare (Karpathy, char-rnn), part of the program (data/shakespeare/): the first 90 % of
// its characters are for training, the rest for test, as in nanoGPT. Small enough for a first
// language model without downloads.
#pragma once

#include "absl/status/statusor.h"
#include "data/text.h"

namespace thinwire {

absl::StatusOr<CorpusText> ReadShakespeare(const DataOptions& options);

// By characters, and by GPT-2's own vocabulary.
CorpusSize ShakespeareSize(TokenKind tokens);

}  // namespace thinwire
