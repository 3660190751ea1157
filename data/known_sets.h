// Data sets that are read in ways of their own.
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/text.h"

namespace thinwire {

// UCI optdigits, embedded in the program: 3823 training and 1797 test images of handwritten digits,
// 8x8 pixels with values 0 to 16 (data/digits/). Small enough for tests and a first run without
// downloads. Crops are padded by 1, without flips. Images are normalised by the mean and deviation
// of the training set.
DatasetInfo DigitsInfo(const DataOptions& options);

// Loads the images; options.dir is not used. InvalidArgument if a limit or the held-out samples
// exceed the samples.
absl::StatusOr<DataSplits> LoadDigits(const DataOptions& options);

// Tiny Shakespeare (Karpathy, char-rnn), embedded in the program (data/shakespeare/). The first 90
// % of its characters are for training and the rest for test, as in nanoGPT. Small enough for a
// first language model without downloads.
absl::StatusOr<CorpusText> ReadShakespeare(const DataOptions& options);

// Returns the size by characters or by GPT-2's own vocabulary.
CorpusSize ShakespeareSize(TokenKind tokens);

// WikiText-2 in the word-level version, whose rare words are <unk> (Merity et al., 2016).
// wiki.train.tokens is for training and wiki.valid.tokens for test, both unchanged.

// Reads the files from options.dir or the folder wikitext-2 in it. Errors: see LoadData.
absl::StatusOr<CorpusText> ReadWikitext2(const DataOptions& options);

// Returns the size of the official files by characters or by GPT-2's own vocabulary.
CorpusSize Wikitext2Size(TokenKind tokens);

}  // namespace thinwire
