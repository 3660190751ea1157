// CIFAR-10 and CIFAR-100, binary versions (Krizhevsky, 2009;
// https://www.cs.toronto.edu/~kriz/cifar.html).
//
// A record of CIFAR-10 has 3073 bytes: the label (0 to 9), then 1024 bytes each of red, green and
// blue, row by row; one of CIFAR-100 has the coarse label (0 to 19), the fine one (0 to 99) and the
// same. Training files are data_batch_1.bin to data_batch_5.bin, in this order, or train.bin; the
// test file is test_batch.bin or test.bin. Crops are padded by 4 and flips are allowed. Images are
// normalised by the mean and deviation of the training set.
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

// Describes the one called options.name; classes of CIFAR-100 are those of options.labels.
DatasetInfo CifarInfo(const DataOptions& options);

// Loads that one from options.dir or the archive's folder in it, cifar-10-batches-bin or
// cifar-100-binary. With a limit only the files with the first samples are read and must exist.
// With held-out samples all training files must exist, and no test file. Errors: see LoadData.
absl::StatusOr<DataSplits> LoadCifar(const DataOptions& options);

}  // namespace thinwire
