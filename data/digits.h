// UCI optdigits, part of the program: 3823 training and 1797 test images of handwritten digits,
// 8x8 pixels of 0 to 16 (data/digits/). Small enough for tests and a first run without downloads.
// Crops are padded by 1, no flips; normalised by the mean and deviation of the training set.
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

DatasetInfo DigitsInfo();

// InvalidArgument if a limit, or what is held out, exceeds the samples there are. options.dir is
// not used.
absl::StatusOr<DataSplits> LoadDigits(const DataOptions& options);

}  // namespace thinwire
