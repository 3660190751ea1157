// CIFAR-10, binary version (Krizhevsky, 2009; https://www.cs.toronto.edu/~kriz/cifar.html).
//
// A file has up to 10,000 records of 3073 bytes: the label (0 to 9), then 1024 bytes each of red,
// green and blue, row by row. Training files are data_batch_1.bin to data_batch_5.bin, in this
// order; the test file is test_batch.bin. Crops are padded by 4 and flips are allowed. Images are
// normalised by the mean and deviation of the training set.
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

DatasetInfo Cifar10Info();

// Loads from options.dir or the folder cifar-10-batches-bin in it. With a limit only the files with
// the first samples are read and must exist. With held-out samples all training files must exist,
// and no test file. Errors: see LoadData.
absl::StatusOr<DataSplits> LoadCifar10(const DataOptions& options);

}  // namespace thinwire
