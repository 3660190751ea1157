// The data set `text`: files of any size, of which large ones are encoded in pieces and whose ids
// stay in a file.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/tokenizer.h"

namespace thinwire {

// Encodes the text, unless that was done before, and counts its tokens. Errors of LoadTextFile.
absl::StatusOr<CorpusSize> MeasureTextFile(const DataOptions& options);

// Makes the data sets. A text of more than 16 MiB whose tokenizer may_be_cut() takes no more memory
// than a piece of it; any other is read as a whole (ReadTextFile), and has at most 2 GiB. Errors of
// ReadTextFile and LoadText; InvalidArgument too for 1 GiB of a text without a place where it may
// be cut, DataLoss for one that changes while it is read.
absl::StatusOr<DataSplits> LoadTextFile(const DataOptions& options);

// Returns the tokenizer of the text as it was planned (PlannedTokenizer), with the same bounds of
// memory. Errors of LoadTextFile.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOfTextFile(const DataOptions& options);

}  // namespace thinwire
