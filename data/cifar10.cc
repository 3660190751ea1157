#include "data/cifar10.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"
#include "base/status.h"
#include "data/images.h"

namespace thinwire {
namespace {

constexpr int64_t kPixels = 32 * 32, kChannels = 3, kClasses = 10;
constexpr int64_t kRecordBytes = 1 + kPixels * kChannels;
constexpr int64_t kFileSamples = 10'000;
constexpr int64_t kMaxFileBytes = kFileSamples * kRecordBytes;

struct OfficialFile {
  const char* name;
  const char* sha256;
};

constexpr OfficialFile kTrainFiles[] = {
    {"data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
    {"data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
    {"data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
    {"data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
    {"data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
};
constexpr OfficialFile kTestFiles[] = {
    {"test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
};

// A whole number of records, at most as many as an official file has.
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) {
    return absl::NotFoundError(absl::StrCat(
        "cannot read ", path,
        ": download https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, unpack it, and set "
        "data.dir to the folder it makes"));
  }
  if (size == 0 || size % kRecordBytes != 0 || size > kMaxFileBytes) {
    return absl::DataLossError(absl::StrCat(path, " has ", size, " bytes, want a multiple of ",
                                            kRecordBytes, " up to ", kMaxFileBytes));
  }
  std::string bytes(size, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    return absl::DataLossError(absl::StrCat("cannot read all ", size, " bytes of ", path));
  }
  return bytes;
}

std::string Sha256(const std::string& bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(digest), size));
}

absl::Status CheckRecords(const std::string& path, const std::string& bytes, const char* sha256) {
  if (sha256 != nullptr && Sha256(bytes) != sha256) {
    return absl::DataLossError(
        absl::StrCat(path, " has SHA-256 ", Sha256(bytes), ", want ", sha256));
  }
  for (size_t at = 0; at < bytes.size(); at += kRecordBytes) {
    const int label = static_cast<unsigned char>(bytes[at]);
    if (label >= kClasses) {
      return absl::DataLossError(absl::StrCat(path, ": record ", at / kRecordBytes, " has label ",
                                              label, ", want 0 to ", kClasses - 1));
    }
  }
  return absl::OkStatus();
}

// Records as they are gathered for an ImageDataset.
struct Records {
  std::vector<uint8_t> raw, labels;
  Digest digest;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }

  void Append(const std::string& bytes, int64_t count) {
    digest.Add(bytes.data(), static_cast<size_t>(count * kRecordBytes));
    size_t to = raw.size();
    raw.resize(to + static_cast<size_t>(count * kPixels * kChannels));
    for (int64_t i = 0; i < count; ++i) {
      const char* record = bytes.data() + i * kRecordBytes;
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

// The first `limit` records of the files in order; 0: all.
absl::StatusOr<std::unique_ptr<Dataset>> LoadFiles(const std::string& dir,
                                                   absl::Span<const OfficialFile> files,
                                                   int64_t limit, bool verify) {
  Records records;
  for (const OfficialFile& file : files) {
    if (limit > 0 && records.size() == limit) break;
    const std::string path = dir + "/" + file.name;
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
    RETURN_IF_ERROR(CheckRecords(path, bytes, verify ? file.sha256 : nullptr));
    const int64_t held = static_cast<int64_t>(bytes.size()) / kRecordBytes;
    records.Append(bytes, limit > 0 ? std::min(held, limit - records.size()) : held);
  }
  if (records.size() < limit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a limit of ", limit, " samples, but the files in ", dir, " hold ", records.size()));
  }
  records.digest.AddWord(static_cast<uint64_t>(records.size()));
  return std::make_unique<ImageDataset>(Format(), std::move(records.raw), std::move(records.labels),
                                        records.digest.value());
}

}  // namespace

DatasetInfo Cifar10Info() {
  const ImageFormat format = Format();
  return {"cifar10",
          format.sample_shape(),
          format.classes,
          std::size(kTrainFiles) * kFileSamples,
          std::size(kTestFiles) * kFileSamples,
          /*has_folder=*/true};
}

absl::StatusOr<DataSplits> LoadCifar10(const DataOptions& options) {
  std::string dir = options.dir.empty() ? "." : options.dir;
  const std::string inner = dir + "/cifar-10-batches-bin";
  std::error_code ignored;  // a folder that is not there fails where it is read
  if (std::filesystem::exists(inner + "/" + kTrainFiles[0].name, ignored)) dir = inner;
  DataSplits splits;
  ASSIGN_OR_RETURN(splits.train, LoadFiles(dir, kTrainFiles, options.limit, options.verify));
  ASSIGN_OR_RETURN(splits.test, LoadFiles(dir, kTestFiles, options.test_limit, options.verify));
  return splits;
}

}  // namespace thinwire
