// MNIST (LeCun et al., 1998) and Fashion-MNIST (Xiao et al., 2017), or other files in their format,
// IDX: 28x28 grey pixels in ten classes.
//
// A file of images is big-endian: 0x00000803, the number of images, of rows and of columns (u32
// each), then a byte for each pixel, row by row. A file of labels: 0x00000801, their number (u32),
// then a byte each. Files for training are train-images-idx3-ubyte and train-labels-idx1-ubyte, for
// test t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte; packed by gzip they end in .gz. Crops are
// padded by 2, and flips are allowed for Fashion-MNIST. Images are normalised by the mean and
// deviation of the training set.
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

// Describes the one called options.name.
DatasetInfo MnistInfo(const DataOptions& options);

// Loads that one from options.dir. A packed file is preferred; only it can be compared with the
// official one. With held-out samples no file for test must exist. InvalidArgument for a file that
// is not packed where it is to be verified, and for a limit beyond the images; other errors: see
// LoadData.
absl::StatusOr<DataSplits> LoadMnist(const DataOptions& options);

}  // namespace thinwire
