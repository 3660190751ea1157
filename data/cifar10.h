// CIFAR-10, binary version (Krizhevsky, 2009; https://www.cs.toronto.edu/~kriz/cifar.html).
//
// Files of up to 10,000 records of 3073 bytes: label (0 to 9), then 1024 bytes each of red, green,
// blue, row by row. Training: data_batch_1.bin to data_batch_5.bin, in this order; test:
// test_batch.bin. Crops are padded by 4, flips allowed; normalised by the mean and deviation of the
// training set.
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

DatasetInfo Cifar10Info();

// From options.dir or the folder cifar-10-batches-bin in it. With a limit, only the files that
// hold the first samples are read and need to be there; with samples held out all for training, and
// none for test. Errors: see LoadData.
absl::StatusOr<DataSplits> LoadCifar10(const DataOptions& options);

}  // namespace thinwire
