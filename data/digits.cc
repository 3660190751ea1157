#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "data/digits/optdigits.h"
#include "data/held_out.h"
#include "data/images.h"
#include "data/known_sets.h"

namespace thinwire {
namespace {

ImageFormat Format() {
  ImageFormat format;
  format.height = format.width = 8;
  format.channels = 1;
  format.classes = 10;
  format.white = 16;
  format.mean = {0.30774823f};  // mean and deviation of the 3823 training images
  format.deviation = {0.37728035f};
  format.crop_padding = 1;
  return format;
}

// Makes a data set of the records [first, last).
std::unique_ptr<Dataset> Images(const OptdigitsRecords& records, SampleRange range) {
  std::vector<uint8_t> raw, labels;
  for (int64_t i = range.first; i < range.last; ++i) {
    const uint8_t* record = records.bytes + i * kOptdigitsRecordBytes;
    raw.insert(raw.end(), record, record + kOptdigitsRecordBytes - 1);
    labels.push_back(record[kOptdigitsRecordBytes - 1]);
  }
  Digest digest;
  const int64_t count = range.last - range.first;
  digest.Add(records.bytes + range.first * kOptdigitsRecordBytes,
             static_cast<size_t>(count * kOptdigitsRecordBytes));
  digest.AddWord(static_cast<uint64_t>(count));
  return std::make_unique<ImageDataset>(Format(), std::move(raw), std::move(labels),
                                        digest.value());
}

}  // namespace

DatasetInfo DigitsInfo(const DataOptions& /*options*/) {
  const ImageFormat format = Format();
  return {"digits", format.sample_shape(), format.classes, OptdigitsTrain().count,
          OptdigitsTest().count};
}

absl::StatusOr<DataSplits> LoadDigits(const DataOptions& options) {
  DataSplits splits;
  ASSIGN_OR_RETURN(const ImageParts parts,
                   PartsOf("the training digits", OptdigitsTrain().count, options));
  splits.train = Images(OptdigitsTrain(), parts.train);
  if (options.held_out > 0) {
    splits.test = Images(OptdigitsTrain(), parts.held_out);
    return splits;
  }
  const int64_t test_samples = OptdigitsTest().count;
  RETURN_IF_ERROR(CheckLimit("the test digits", test_samples, options.test_limit));
  splits.test = Images(OptdigitsTest(), FirstOf(test_samples, options.test_limit));
  return splits;
}

}  // namespace thinwire
