// The data set `jsonl`: files with an example a line (example.h), encoded once and kept beside them
// (document_store.h).
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

// Encodes the files, unless that was done before, and counts their samples. Errors of FilesAt,
// TokenizerOf, ForEachLine, ParseExample, DocumentEncoder and DocumentStore; a line is named by its
// file and number.
absl::StatusOr<CorpusSize> MeasureJsonl(const DataOptions& options);

// Makes the data sets. Errors of MeasureJsonl; see LoadData too.
absl::StatusOr<DataSplits> LoadJsonl(const DataOptions& options);

}  // namespace thinwire
