// Labelled samples in memory. Immutable once loaded; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensor/shape.h"

namespace thinwire {

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual int64_t classes() const = 0;
  virtual Shape sample_shape() const = 0;  // batch extent 1: [1, h, w, c]
  virtual int32_t label(int64_t sample) const = 0;
  // torchvision's RandomCrop, then RandomHorizontalFlip: pixel (y, x) of the crop is (y + dy,
  // x + dx) of the image, black outside (black as a raw pixel: the crop comes before
  // normalisation); then the crop is flipped.
  struct Augmentation {
    int dy = 0, dx = 0;  // pixels
    bool flip = false;   // left to right
  };
  // Writes the normalised sample, channels-last, to `out`: h w c floats.
  virtual void Load(int64_t sample, const Augmentation& augmentation,
                    absl::Span<float> out) const = 0;
  // Which data this is: equal on two machines iff bytes, order and size (the limit) are equal.
  virtual uint64_t digest() const = 0;

  // How this kind of data may be augmented: crop padding in pixels (0: none), flips or not.
  virtual int crop_padding() const = 0;
  virtual bool may_flip() const = 0;
};

// What is known of a data set before, or without, loading it.
struct DatasetInfo {
  std::string name;
  Shape sample;  // the shape of one sample, batch extent 1: [1, 32, 32, 3]
  int64_t classes = 0;
  int64_t train_samples = 0;  // all of them
  int64_t test_samples = 0;
  bool has_folder = false;  // read from files, not embedded
};

// In the order in which errors and lists name them.
std::vector<DatasetInfo> AllDatasets();

struct DataSplits {
  std::unique_ptr<Dataset> train, test;
};

struct DataOptions {
  std::string name;   // one of AllDatasets()
  std::string dir;    // cifar10: the folder that holds data_batch_1.bin (or cifar-10-batches-bin/)
  int64_t limit = 0;  // first n training samples; 0: all
  int64_t test_limit = 0;  // first n test samples; 0: all
  bool verify = true;      // compare checksums with those of the official files
};

// NotFound names the missing file and how to get it; DataLoss names file, the size or checksum
// met and the one wanted; InvalidArgument an unknown name, the nearest and all known ones, or a
// limit that there are too few samples for.
absl::StatusOr<DataSplits> LoadData(const DataOptions& options);

}  // namespace thinwire
