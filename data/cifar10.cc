#include "data/cifar10.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "data/held_out.h"
#include "data/images.h"
#include "data/official.h"

namespace thinwire {
namespace {

constexpr int64_t kPixels = 32 * 32, kChannels = 3, kClasses = 10;
constexpr int64_t kRecordBytes = 1 + kPixels * kChannels;
constexpr int64_t kFileSamples = 10'000;
constexpr int64_t kMaxFileBytes = kFileSamples * kRecordBytes;

absl::Span<const OfficialFile> TrainFiles() {
  return absl::MakeConstSpan(OfficialDataOf("cifar10").files).first(5);
}

absl::Span<const OfficialFile> TestFiles() {
  return absl::MakeConstSpan(OfficialDataOf("cifar10").files).subspan(5);
}

// Reads a whole number of records, at most as many as an official file has.
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  RETURN_IF_ERROR(CheckRegular(path));
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) {
    return absl::NotFoundError(absl::StrCat(
        "cannot read ", path, ": `thinwire data fetch cifar10` downloads ",
        OfficialDataOf("cifar10").sources[0].archive,
        " and unpacks it into data/cifar10; data.dir may name any folder that has its files"));
  }
  if (size == 0 || size % kRecordBytes != 0 || size > kMaxFileBytes) {
    return StandInOr(
        path, absl::DataLossError(absl::StrCat(path, " has ", size, " bytes, want a multiple of ",
                                               kRecordBytes, " up to ", kMaxFileBytes)));
  }
  std::string bytes(size, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    return absl::DataLossError(absl::StrCat("cannot read all ", size, " bytes of ", path));
  }
  return bytes;
}

absl::Status CheckLabels(const std::string& path, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size(); at += kRecordBytes) {
    const int label = static_cast<unsigned char>(bytes[at]);
    if (label >= kClasses) {
      return absl::DataLossError(absl::StrCat(path, ": record ", at / kRecordBytes, " has label ",
                                              label, ", want 0 to ", kClasses - 1));
    }
  }
  return absl::OkStatus();
}

// Records that are gathered for an ImageDataset.
struct Records {
  std::vector<uint8_t> raw, labels;
  Digest digest;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }

  // Appends the records [first, last) of a file.
  void Append(const std::string& bytes, SampleRange range) {
    const int64_t count = range.last - range.first;
    const char* const begin = bytes.data() + range.first * kRecordBytes;
    digest.Add(begin, static_cast<size_t>(count * kRecordBytes));
    size_t to = raw.size();
    raw.resize(to + static_cast<size_t>(count * kPixels * kChannels));
    for (int64_t i = 0; i < count; ++i) {
      const char* record = begin + i * kRecordBytes;
      labels.push_back(static_cast<uint8_t>(record[0]));
      for (int64_t p = 0; p < kPixels; ++p) {
        for (int64_t c = 0; c < kChannels; ++c) {
          raw[to++] = static_cast<uint8_t>(record[1 + c * kPixels + p]);
        }
      }
    }
  }
};

ImageFormat Format() {
  ImageFormat format;
  format.height = format.width = 32;
  format.channels = kChannels;
  format.classes = kClasses;
  format.mean = {0.4914f, 0.4822f, 0.4465f};
  format.deviation = {0.2023f, 0.1994f, 0.2010f};
  format.crop_padding = 4;
  format.may_flip = true;
  return format;
}

// Checks that a file is complete. Without a limit on the samples, a file cut off at a record's end
// would otherwise go unnoticed.
absl::Status CheckWhole(const OfficialFile& file, const std::string& path, size_t bytes) {
  if (static_cast<int64_t>(bytes) == file.bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has ", bytes, " bytes, ", bytes / kRecordBytes,
                                          " records of ", kRecordBytes, ", want ", file.bytes,
                                          ", or a data.limit and data.test_limit"));
}

int64_t RecordsOf(const std::string& bytes) {
  return static_cast<int64_t>(bytes.size()) / kRecordBytes;
}

struct ReadFiles {
  std::vector<std::string> bytes;
  int64_t records = 0;
};

// Reads the files in order, only as many as `limit` records need; 0: all of them, complete.
absl::StatusOr<ReadFiles> Read(const std::string& dir, absl::Span<const OfficialFile> files,
                               int64_t limit, bool verify) {
  ReadFiles read;
  for (const OfficialFile& file : files) {
    if (limit > 0 && read.records >= limit) break;
    const std::string path = dir + "/" + file.name;
    ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
    if (verify) RETURN_IF_ERROR(CheckOfficial(file, path, bytes));
    if (limit == 0) RETURN_IF_ERROR(CheckWhole(file, path, bytes.size()));
    RETURN_IF_ERROR(CheckLabels(path, bytes));
    read.records += RecordsOf(bytes);
    read.bytes.push_back(std::move(bytes));
  }
  return read;
}

// Makes a data set of the records [first, last) of all that was read.
std::unique_ptr<Dataset> Images(const ReadFiles& read, SampleRange range) {
  Records records;
  int64_t before = 0;
  for (const std::string& bytes : read.bytes) {
    const int64_t held = RecordsOf(bytes);
    const SampleRange part = {std::clamp<int64_t>(range.first - before, 0, held),
                              std::clamp<int64_t>(range.last - before, 0, held)};
    if (part.first < part.last) records.Append(bytes, part);
    before += held;
  }
  records.digest.AddWord(static_cast<uint64_t>(records.size()));
  return std::make_unique<ImageDataset>(Format(), std::move(records.raw), std::move(records.labels),
                                        records.digest.value());
}

}  // namespace

DatasetInfo Cifar10Info() {
  const ImageFormat format = Format();
  return {"cifar10", format.sample_shape(), format.classes,
          static_cast<int64_t>(TrainFiles().size()) * kFileSamples,
          static_cast<int64_t>(TestFiles().size()) * kFileSamples};
}

absl::StatusOr<DataSplits> LoadCifar10(const DataOptions& options) {
  std::string dir = options.dir.empty() ? "." : options.dir;
  const std::string inner = dir + "/cifar-10-batches-bin";
  std::error_code ignored;  // reading reports a missing folder
  if (std::filesystem::exists(inner + "/" + TrainFiles()[0].name, ignored)) dir = inner;
  DataSplits splits;
  // A limit allows incomplete files. With held-out samples all are needed, as those are the last
  // ones.
  const bool wants_all = options.held_out > 0 && options.limit > 0;
  const int64_t wanted = wants_all ? std::numeric_limits<int64_t>::max() : options.limit;
  const std::string what = absl::StrCat("the files in ", dir);
  ASSIGN_OR_RETURN(const ReadFiles train, Read(dir, TrainFiles(), wanted, options.verify));
  ASSIGN_OR_RETURN(const ImageParts parts, PartsOf(what, train.records, options));
  splits.train = Images(train, parts.train);
  if (options.held_out > 0) {
    splits.test = Images(train, parts.held_out);
    return splits;
  }
  ASSIGN_OR_RETURN(const ReadFiles test,
                   Read(dir, TestFiles(), options.test_limit, options.verify));
  RETURN_IF_ERROR(CheckLimit(what, test.records, options.test_limit));
  splits.test = Images(test, FirstOf(test.records, options.test_limit));
  return splits;
}

}  // namespace thinwire
