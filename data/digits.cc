#include "data/digits.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status.h"
#include "data/digits/optdigits.h"
#include "data/images.h"

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

// The first `limit` records; 0: all.
absl::StatusOr<std::unique_ptr<Dataset>> Images(const OptdigitsRecords& records, int64_t limit) {
  if (limit > records.count) {
    return absl::InvalidArgumentError(
        absl::StrCat("a limit of ", limit, " samples, but digits holds ", records.count));
  }
  const int64_t count = limit > 0 ? limit : records.count;
  std::vector<uint8_t> raw, labels;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* record = records.bytes + i * kOptdigitsRecordBytes;
    raw.insert(raw.end(), record, record + kOptdigitsRecordBytes - 1);
    labels.push_back(record[kOptdigitsRecordBytes - 1]);
  }
  Digest digest;
  digest.Add(records.bytes, static_cast<size_t>(count * kOptdigitsRecordBytes));
  digest.AddWord(static_cast<uint64_t>(count));
  return std::make_unique<ImageDataset>(Format(), std::move(raw), std::move(labels),
                                        digest.value());
}

}  // namespace

DatasetInfo DigitsInfo() {
  const ImageFormat format = Format();
  return {"digits", format.sample_shape(), format.classes, OptdigitsTrain().count,
          OptdigitsTest().count};
}

absl::StatusOr<DataSplits> LoadDigits(const DataOptions& options) {
  DataSplits splits;
  ASSIGN_OR_RETURN(splits.train, Images(OptdigitsTrain(), options.limit));
  ASSIGN_OR_RETURN(splits.test, Images(OptdigitsTest(), options.test_limit));
  return splits;
}

}  // namespace thinwire
