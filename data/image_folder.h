// The data set `images`: pictures in folders, one for each class.
#pragma once

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

// Returns the numbers of classes and of pictures in options.dir. Errors as in LoadImageFolder.
absl::StatusOr<CorpusSize> MeasureImageFolder(const DataOptions& options);

// Makes the data sets of DIR/train/CLASS and DIR/val/CLASS (or DIR/test/CLASS), of all JPEG and PNG
// files in each class's folder and below. Classes are the folders' names, sorted bytewise.
// Pictures are in an order that mixes classes and depends on their number only. Nothing is decoded
// before a sample is loaded; status() then names a file that is broken. The digest is that of names
// and lengths of the files.
//
// For evaluation the shorter side becomes options.images.resize, and the middle of options.images
// .size is taken. For training that is so too, or with PictureCrop::kRandomResized a part of 8 % to
// all of the area and of sides 3 : 4 to 4 : 3, and half of the pictures are flipped (torchvision's
// transforms; Szegedy et al., 2015).
//
// NotFound names a folder without classes or pictures; InvalidArgument a class that only one part
// has, and sizes that do not fit. See LoadData too.
absl::StatusOr<DataSplits> LoadImageFolder(const DataOptions& options);

}  // namespace thinwire
