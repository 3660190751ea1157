// The data set `tokens`: a text whose ids are in files already.
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

// Returns the size of the files: the vocabulary is that of options.text.tokens or, of ids alone,
// the greatest id and one, for which everything is read. Errors of FilesAt, IdFiles, WithMasks and
// TokenizerOf.
absl::StatusOr<CorpusSize> MeasureIds(const DataOptions& options);

// Makes the data sets, which stay in the files. Only ids are learned that masks beside the files
// name; where there are none, all with LossOn::kMasks, while LossOn::kAnswers is refused. Errors:
// see LoadData; those of MeasureIds too.
absl::StatusOr<DataSplits> LoadIds(const DataOptions& options);

}  // namespace thinwire
