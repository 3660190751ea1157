#include "data/cifar.h"

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

constexpr int64_t kPixels = 32 * 32, kChannels = 3;

// One of the sets, with the labels that are asked for.
struct Cifar {
  const OfficialData& official;
  size_t train_files;   // the first of all files
  int64_t label_bytes;  // of a record, in front of its image
  int64_t label_at;     // of the label among them
  int64_t classes;
  std::vector<float> mean, deviation;

  int64_t record_bytes() const { return label_bytes + kPixels * kChannels; }
  int64_t RecordsIn(size_t bytes) const { return static_cast<int64_t>(bytes) / record_bytes(); }
  absl::Span<const OfficialFile> TrainFiles() const {
    return absl::MakeConstSpan(official.files).first(train_files);
  }
  absl::Span<const OfficialFile> TestFiles() const {
    return absl::MakeConstSpan(official.files).subspan(train_files);
  }
};

Cifar CifarOf(const DataOptions& options) {
  const OfficialData& official = OfficialDataOf(options.name);
  if (options.name == "cifar10") {
    return {official, 5, 1, 0, 10, {0.4914f, 0.4822f, 0.4465f}, {0.2023f, 0.1994f, 0.2010f}};
  }
  const bool is_fine = options.labels == CifarLabels::kFine;
  return {official,
          1,
          2,
          is_fine ? 1 : 0,
          is_fine ? 100 : 20,
          {0.5071f, 0.4865f, 0.4409f},
          {0.2673f, 0.2564f, 0.2762f}};
}

// Reads a whole number of records, at most as many as the official file has.
absl::StatusOr<std::string> ReadFile(const Cifar& cifar, const OfficialFile& official,
                                     const std::string& path) {
  RETURN_IF_ERROR(CheckRegular(path));
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  const std::string& name = cifar.official.name;
  if (error || !file) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": `thinwire data fetch ", name,
                                            "` downloads ", cifar.official.sources[0].archive,
                                            " and unpacks it into data/", name,
                                            "; data.dir may name any folder that has its files"));
  }
  const auto record = static_cast<std::uintmax_t>(cifar.record_bytes());
  if (size == 0 || size % record != 0 || size > static_cast<std::uintmax_t>(official.bytes)) {
    return StandInOr(
        path, absl::DataLossError(absl::StrCat(path, " has ", size, " bytes, want a multiple of ",
                                               record, " up to ", official.bytes)));
  }
  std::string bytes(size, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    return absl::DataLossError(absl::StrCat("cannot read all ", size, " bytes of ", path));
  }
  return bytes;
}

absl::Status CheckLabels(const Cifar& cifar, const std::string& path, const std::string& bytes) {
  for (int64_t record = 0; record < cifar.RecordsIn(bytes.size()); ++record) {
    const auto at = static_cast<size_t>(record * cifar.record_bytes() + cifar.label_at);
    const int label = static_cast<unsigned char>(bytes[at]);
    if (label < cifar.classes) continue;
    return absl::DataLossError(absl::StrCat(path, ": record ", record, " has label ", label,
                                            ", want 0 to ", cifar.classes - 1));
  }
  return absl::OkStatus();
}

// Records that are gathered for an ImageDataset.
struct Records {
  std::vector<uint8_t> raw, labels;
  Digest digest;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }

  // Appends the records [first, last) of a file.
  void Append(const Cifar& cifar, const std::string& bytes, SampleRange range) {
    const int64_t count = range.last - range.first;
    const char* const begin = bytes.data() + range.first * cifar.record_bytes();
    digest.Add(begin, static_cast<size_t>(count * cifar.record_bytes()));
    size_t to = raw.size();
    raw.resize(to + static_cast<size_t>(count * kPixels * kChannels));
    for (int64_t i = 0; i < count; ++i) {
      const char* const record = begin + i * cifar.record_bytes();
      const char* const image = record + cifar.label_bytes;
      labels.push_back(static_cast<uint8_t>(record[cifar.label_at]));
      for (int64_t p = 0; p < kPixels; ++p) {
        for (int64_t c = 0; c < kChannels; ++c) {
          raw[to++] = static_cast<uint8_t>(image[c * kPixels + p]);
        }
      }
    }
  }
};

ImageFormat FormatOf(const Cifar& cifar) {
  ImageFormat format;
  format.height = format.width = 32;
  format.channels = kChannels;
  format.classes = cifar.classes;
  format.mean = cifar.mean;
  format.deviation = cifar.deviation;
  format.crop_padding = 4;
  format.may_flip = true;
  return format;
}

// Checks that a file is complete. Without a limit on the samples, a file cut off at a record's end
// would otherwise go unnoticed.
absl::Status CheckWhole(const Cifar& cifar, const OfficialFile& file, const std::string& path,
                        size_t bytes) {
  if (static_cast<int64_t>(bytes) == file.bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has ", bytes, " bytes, ", cifar.RecordsIn(bytes),
                                          " records of ", cifar.record_bytes(), ", want ",
                                          file.bytes, ", or a data.limit and data.test_limit"));
}

struct ReadFiles {
  std::vector<std::string> bytes;
  int64_t records = 0;
};

// Reads the files in order, only as many as `limit` records need; 0: all of them, complete.
absl::StatusOr<ReadFiles> Read(const Cifar& cifar, const std::string& dir,
                               absl::Span<const OfficialFile> files, int64_t limit, bool verify) {
  ReadFiles read;
  for (const OfficialFile& file : files) {
    if (limit > 0 && read.records >= limit) break;
    const std::string path = dir + "/" + file.name;
    ASSIGN_OR_RETURN(std::string bytes, ReadFile(cifar, file, path));
    if (verify) RETURN_IF_ERROR(CheckOfficial(file, path, bytes));
    if (limit == 0) RETURN_IF_ERROR(CheckWhole(cifar, file, path, bytes.size()));
    RETURN_IF_ERROR(CheckLabels(cifar, path, bytes));
    read.records += cifar.RecordsIn(bytes.size());
    read.bytes.push_back(std::move(bytes));
  }
  return read;
}

// Makes a data set of the records [first, last) of all that was read.
std::unique_ptr<Dataset> Images(const Cifar& cifar, const ReadFiles& read, SampleRange range) {
  Records records;
  int64_t before = 0;
  for (const std::string& bytes : read.bytes) {
    const int64_t held = cifar.RecordsIn(bytes.size());
    const SampleRange part = {std::clamp<int64_t>(range.first - before, 0, held),
                              std::clamp<int64_t>(range.last - before, 0, held)};
    if (part.first < part.last) records.Append(cifar, bytes, part);
    before += held;
  }
  records.digest.AddWord(static_cast<uint64_t>(records.size()));
  return std::make_unique<ImageDataset>(FormatOf(cifar), std::move(records.raw),
                                        std::move(records.labels), records.digest.value());
}

int64_t OfficialRecords(const Cifar& cifar, absl::Span<const OfficialFile> files) {
  int64_t records = 0;
  for (const OfficialFile& file : files) {
    records += cifar.RecordsIn(static_cast<size_t>(file.bytes));
  }
  return records;
}

}  // namespace

DatasetInfo CifarInfo(const DataOptions& options) {
  const Cifar cifar = CifarOf(options);
  return {options.name, FormatOf(cifar).sample_shape(), cifar.classes,
          OfficialRecords(cifar, cifar.TrainFiles()), OfficialRecords(cifar, cifar.TestFiles())};
}

absl::StatusOr<DataSplits> LoadCifar(const DataOptions& options) {
  const Cifar cifar = CifarOf(options);
  std::string dir = options.dir.empty() ? "." : options.dir;
  const std::string inner = dir + "/" + cifar.official.sources[0].folder;
  std::error_code ignored;  // reading reports a missing folder
  if (std::filesystem::exists(inner + "/" + cifar.official.files[0].name, ignored)) dir = inner;
  DataSplits splits;
  // A limit allows incomplete files. With held-out samples all are needed, as those are the last
  // ones.
  const bool wants_all = options.held_out > 0 && options.limit > 0;
  const int64_t wanted = wants_all ? std::numeric_limits<int64_t>::max() : options.limit;
  const std::string what = absl::StrCat("the files in ", dir);
  ASSIGN_OR_RETURN(const ReadFiles train,
                   Read(cifar, dir, cifar.TrainFiles(), wanted, options.verify));
  ASSIGN_OR_RETURN(const ImageParts parts, PartsOf(what, train.records, options));
  splits.train = Images(cifar, train, parts.train);
  if (options.held_out > 0) {
    splits.test = Images(cifar, train, parts.held_out);
    return splits;
  }
  ASSIGN_OR_RETURN(const ReadFiles test,
                   Read(cifar, dir, cifar.TestFiles(), options.test_limit, options.verify));
  RETURN_IF_ERROR(CheckLimit(what, test.records, options.test_limit));
  splits.test = Images(cifar, test, FirstOf(test.records, options.test_limit));
  return splits;
}

}  // namespace thinwire
