#include "data/mnist.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "data/held_out.h"
#include "data/images.h"
#include "data/official.h"
#include "data/unpacked_file.h"

namespace thinwire {
namespace {

constexpr int64_t kSide = 28, kPixels = kSide * kSide, kClasses = 10;
constexpr int64_t kTrainSamples = 60'000, kTestSamples = 10'000;

// Layout of a file: numbers in front of its bytes, and the bytes of an image or a label.
struct Layout {
  const char* what;
  uint32_t magic;
  size_t header_bytes;
  size_t each;
};
constexpr Layout kImages = {"images", 0x803, 16, kPixels};
constexpr Layout kLabels = {"labels", 0x801, 8, 1};

// Returns the big-endian number at byte `at`, before which the bytes do not end.
uint32_t WordAt(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 0; i < sizeof(word); ++i) {
    word = word << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return word;
}

// The contents of a file behind its header.
struct Read {
  std::string path, bytes;
  int64_t count;
};

absl::Status CheckHeader(const std::string& path, std::string_view bytes, const Layout& layout) {
  if (bytes.size() < layout.header_bytes) {
    return absl::DataLossError(absl::StrCat(path, " has ", bytes.size(),
                                            " bytes, want a header of ", layout.header_bytes));
  }
  if (const uint32_t magic = WordAt(bytes, 0); magic != layout.magic) {
    return absl::DataLossError(
        absl::StrFormat("%s: begins with 0x%08x, want 0x%08x, %s of a byte "
                        "each",
                        path, magic, layout.magic, layout.what));
  }
  if (layout.each == 1) return absl::OkStatus();
  const uint32_t rows = WordAt(bytes, 8), columns = WordAt(bytes, 12);
  if (rows == kSide && columns == kSide) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": images have ", rows, " x ", columns,
                                          " pixels, want ", kSide, " x ", kSide));
}

// Returns the path of a file of `dir`, packed if that is there.
std::string PathOf(const std::string& dir, const OfficialFile& official) {
  const std::string packed = absl::StrCat(dir, "/", official.name);
  const std::string plain(absl::StripSuffix(packed, ".gz"));
  std::error_code ignored;  // reading reports a missing file
  const bool is_plain =
      !std::filesystem::exists(packed, ignored) && std::filesystem::exists(plain, ignored);
  return is_plain ? plain : packed;
}

absl::Status CheckFile(const OfficialData& data, const OfficialFile& official,
                       const std::string& path, bool verify) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": `thinwire data fetch ",
                                            data.name, "` gets the files into data/", data.name,
                                            "; data.dir may name any folder that has them"));
  }
  if (!verify) return absl::OkStatus();
  if (path.size() < 3 || path.substr(path.size() - 3) != ".gz") {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not packed, and cannot be compared with the official ",
                     official.name, ": want data.verify: false with it"));
  }
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  return CheckOfficial(official, path, content);
}

// Reads a file, which has at most `most` images or labels.
absl::StatusOr<Read> ReadIdx(const OfficialData& data, const OfficialFile& official,
                             const std::string& dir, const Layout& layout, int64_t most,
                             bool verify) {
  Read read{PathOf(dir, official), "", 0};
  RETURN_IF_ERROR(CheckFile(data, official, read.path, verify));
  const size_t longest = layout.header_bytes + layout.each * static_cast<size_t>(most);
  RETURN_IF_ERROR(ReadUnpacked(read.path, [&](std::string_view piece) -> absl::Status {
    read.bytes += piece;
    if (read.bytes.size() <= longest) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(read.path, " has more than ", longest,
                                            " bytes, want no more than ", most, " ", layout.what));
  }));
  RETURN_IF_ERROR(CheckNoStandIn(read.path, read.bytes));
  RETURN_IF_ERROR(CheckHeader(read.path, read.bytes, layout));
  read.count = WordAt(read.bytes, 4);
  const size_t wanted = layout.header_bytes + layout.each * static_cast<size_t>(read.count);
  if (read.count > 0 && read.bytes.size() == wanted) {
    read.bytes.erase(0, layout.header_bytes);
    return read;
  }
  return absl::DataLossError(absl::StrCat(read.path, " has ", read.bytes.size(), " bytes, want ",
                                          wanted, " for the ", read.count, " ", layout.what,
                                          " that its header says, at least one"));
}

absl::Status CheckLabels(const Read& labels) {
  for (int64_t i = 0; i < labels.count; ++i) {
    const int label = static_cast<unsigned char>(labels.bytes[static_cast<size_t>(i)]);
    if (label < kClasses) continue;
    return absl::DataLossError(
        absl::StrCat(labels.path, ": label ", i, " is ", label, ", want 0 to ", kClasses - 1));
  }
  return absl::OkStatus();
}

struct Part {
  Read images, labels;
};

// Reads the files of a part, of which files[first] has the images. Without a limit it has all
// samples.
absl::StatusOr<Part> ReadPart(const DataOptions& options, size_t first, int64_t samples,
                              int64_t limit) {
  const OfficialData& data = OfficialDataOf(options.name);
  const std::string dir = options.dir.empty() ? "." : options.dir;
  Part part;
  ASSIGN_OR_RETURN(part.images,
                   ReadIdx(data, data.files[first], dir, kImages, samples, options.verify));
  ASSIGN_OR_RETURN(part.labels,
                   ReadIdx(data, data.files[first + 1], dir, kLabels, samples, options.verify));
  if (part.labels.count != part.images.count) {
    return absl::DataLossError(absl::StrCat(part.labels.path, " has ", part.labels.count,
                                            " labels, want ", part.images.count, ", as many as ",
                                            part.images.path, " has images"));
  }
  if (limit == 0 && part.images.count != samples) {
    return absl::DataLossError(absl::StrCat(part.images.path, " has ", part.images.count,
                                            " images, want ", samples,
                                            ", or a data.limit and data.test_limit"));
  }
  RETURN_IF_ERROR(CheckLabels(part.labels));
  return part;
}

ImageFormat FormatOf(const DataOptions& options) {
  const bool is_digits = options.name == "mnist";
  ImageFormat format;
  format.height = format.width = kSide;
  format.channels = 1;
  format.classes = kClasses;
  format.mean = {is_digits ? 0.1307f : 0.2860f};
  format.deviation = {is_digits ? 0.3081f : 0.3530f};
  format.crop_padding = 2;
  format.may_flip = !is_digits;
  return format;
}

std::unique_ptr<Dataset> Images(const DataOptions& options, const Part& part, SampleRange range) {
  const std::string& pixels = part.images.bytes;
  std::vector<uint8_t> raw(pixels.begin() + range.first * kPixels,
                           pixels.begin() + range.last * kPixels);
  std::vector<uint8_t> labels(part.labels.bytes.begin() + range.first,
                              part.labels.bytes.begin() + range.last);
  Digest digest;
  digest.Add(raw.data(), raw.size());
  digest.Add(labels.data(), labels.size());
  digest.AddWord(static_cast<uint64_t>(labels.size()));
  return std::make_unique<ImageDataset>(FormatOf(options), std::move(raw), std::move(labels),
                                        digest.value());
}

}  // namespace

DatasetInfo MnistInfo(const DataOptions& options) {
  const ImageFormat format = FormatOf(options);
  return {options.name, format.sample_shape(), format.classes, kTrainSamples, kTestSamples};
}

absl::StatusOr<DataSplits> LoadMnist(const DataOptions& options) {
  ASSIGN_OR_RETURN(const Part train, ReadPart(options, 0, kTrainSamples, options.limit));
  ASSIGN_OR_RETURN(
      const ImageParts parts,
      PartsOf(absl::StrCat("the images of ", train.images.path), train.images.count, options));
  DataSplits splits;
  splits.train = Images(options, train, parts.train);
  if (options.held_out > 0) {
    splits.test = Images(options, train, parts.held_out);
    return splits;
  }
  ASSIGN_OR_RETURN(const Part test, ReadPart(options, 2, kTestSamples, options.test_limit));
  RETURN_IF_ERROR(CheckLimit(absl::StrCat("the images of ", test.images.path), test.images.count,
                             options.test_limit));
  splits.test = Images(options, test, FirstOf(test.images.count, options.test_limit));
  return splits;
}

}  // namespace thinwire
