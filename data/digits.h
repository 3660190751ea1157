// UCI optdigits, embedded in the program: 3823 training and 1797 test images of handwritten digits,
// 8x8 pixels with values 0 to 16 (data/digits/). Small enough for tests and a first run without
// downloads. Crops are padded by 1, without flips. Images are normalised by the mean and deviation
// of the training set.
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

DatasetInfo DigitsInfo();

// Loads the images; options.dir is not used. InvalidArgument if a limit or the held-out samples
// exceed the samples.
absl::StatusOr<DataSplits> LoadDigits(const DataOptions& options);

}  // namespace thinwire
