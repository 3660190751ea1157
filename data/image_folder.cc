#include "data/image_folder.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/random.h"
#include "base/status.h"
#include "data/file_list.h"
#include "data/first_error.h"
#include "data/held_out.h"
#include "data/picture.h"
#include "data/sampler.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kChannels = 3;

struct PictureFile {
  std::string path;
  int32_t label;
  uint64_t bytes;
};

struct PictureFiles {
  std::string folder;
  std::vector<std::string> classes;
  std::vector<PictureFile> files;
};

bool IsPicture(const std::string& path) {
  const std::string name = absl::AsciiStrToLower(path);
  return absl::EndsWith(name, ".jpg") || absl::EndsWith(name, ".jpeg") ||
         absl::EndsWith(name, ".png");
}

absl::StatusOr<std::vector<std::string>> ClassesIn(const std::string& folder) {
  std::vector<std::string> classes;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    if (entry->is_directory(ignored) && name[0] != '.') classes.push_back(name);
  }
  if (error) return FileError(folder, "cannot read", error.value());
  if (classes.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, " has no folders, want one for each class"));
  }
  std::sort(classes.begin(), classes.end());
  return classes;
}

// Mixes classes, so that the first files, or the last ones, have all of them. The order is the same
// everywhere.
void Mix(std::vector<PictureFile>* files) {
  std::vector<PictureFile> mixed;
  const EpochOrder order(/*seed=*/0, /*epoch=*/0, static_cast<int64_t>(files->size()));
  for (int64_t place = 0; place < order.size(); ++place) {
    mixed.push_back(std::move((*files)[static_cast<size_t>(order[place])]));
  }
  *files = std::move(mixed);
}

absl::StatusOr<PictureFiles> FilesIn(const std::string& folder) {
  PictureFiles found{folder, {}, {}};
  ASSIGN_OR_RETURN(found.classes, ClassesIn(folder));
  for (size_t label = 0; label < found.classes.size(); ++label) {
    const std::string of_class = absl::StrCat(folder, "/", found.classes[label]);
    ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesAt("data.dir", of_class));
    const size_t before = found.files.size();
    for (const std::string& path : paths) {
      if (!IsPicture(path)) continue;
      std::error_code ignored;
      found.files.push_back({path, static_cast<int32_t>(label), fs::file_size(path, ignored)});
    }
    if (found.files.size() > before) continue;
    return absl::NotFoundError(
        absl::StrCat(of_class, " has no pictures, want .jpg, .jpeg or .png files"));
  }
  Mix(&found.files);
  return found;
}

std::string TestFolder(const std::string& dir) {
  std::error_code ignored;
  const std::string val = dir + "/val";
  return fs::is_directory(val, ignored) ? val : dir + "/test";
}

// Checks that both parts have the same classes.
absl::Status CheckClasses(const PictureFiles& train, const PictureFiles& test) {
  if (train.classes == test.classes) return absl::OkStatus();
  const auto missing = [](const PictureFiles& in, const PictureFiles& from) {
    for (const std::string& name : from.classes) {
      if (std::binary_search(in.classes.begin(), in.classes.end(), name)) continue;
      return absl::StrCat(in.folder, " has no class ", name, ", which ", from.folder, " has");
    }
    return std::string();
  };
  const std::string of_test = missing(test, train);
  return absl::InvalidArgumentError(of_test.empty() ? missing(train, test) : of_test);
}

struct Folders {
  PictureFiles train, test;
};

absl::StatusOr<Folders> ReadFolders(const DataOptions& options) {
  Folders folders;
  ASSIGN_OR_RETURN(folders.train, FilesIn(options.dir + "/train"));
  ASSIGN_OR_RETURN(folders.test, FilesIn(TestFolder(options.dir)));
  RETURN_IF_ERROR(CheckClasses(folders.train, folders.test));
  return folders;
}

CorpusSize SizeOf(const Folders& folders) {
  CorpusSize size;
  size.classes = static_cast<int64_t>(folders.train.classes.size());
  size.train_samples = static_cast<int64_t>(folders.train.files.size());
  size.test_samples = static_cast<int64_t>(folders.test.files.size());
  return size;
}

// Returns the part of a picture whose sides are as one of `area` and `aspect` (width over height).
std::optional<PictureBox> PartOf(const Picture& picture, double area, double aspect,
                                 RandomStream* random) {
  PictureBox part;
  part.width = static_cast<int>(std::lround(std::sqrt(area * aspect)));
  part.height = static_cast<int>(std::lround(std::sqrt(area / aspect)));
  const int right = picture.width - part.width, below = picture.height - part.height;
  if (part.width < 1 || part.height < 1 || right < 0 || below < 0) return std::nullopt;
  part.top = static_cast<int>(random->Below(static_cast<uint32_t>(below) + 1));
  part.left = static_cast<int>(random->Below(static_cast<uint32_t>(right) + 1));
  return part;
}

// Returns the largest part in the middle whose sides are at most `most` to one.
PictureBox MiddleOf(const Picture& picture, double most) {
  PictureBox part{0, 0, picture.width, picture.height};
  part.width = std::min(part.width, static_cast<int>(std::lround(part.height * most)));
  part.height = std::min(part.height, static_cast<int>(std::lround(picture.width * most)));
  part.width = std::max(part.width, 1);
  part.height = std::max(part.height, 1);
  part.left = (picture.width - part.width) / 2;
  part.top = (picture.height - part.height) / 2;
  return part;
}

// Returns a random part, as torchvision's RandomResizedCrop.
PictureBox RandomPart(const Picture& picture, uint64_t key) {
  constexpr int kTries = 10;
  constexpr double kLeast = 0.08, kMostToOne = 4.0 / 3.0;
  RandomStream random(key);
  const double area = static_cast<double>(picture.width) * picture.height;
  for (int i = 0; i < kTries; ++i) {
    const double share = kLeast + (1 - kLeast) * random.NextFloat();
    const double aspect = std::pow(kMostToOne, 2.0 * random.NextFloat() - 1);
    const auto part = PartOf(picture, area * share, aspect, &random);
    if (part) return *part;
  }
  return MiddleOf(picture, kMostToOne);
}

// Resizes the shorter side and takes the middle.
Picture Middle(const Picture& picture, const ImageOptions& options) {
  const auto size = static_cast<int>(options.size);
  const int64_t shorter = std::min(picture.width, picture.height);
  const int64_t width = options.resize * picture.width / shorter;
  const int64_t height = options.resize * picture.height / shorter;
  // Halves are rounded to even numbers, as Python does.
  const auto begin = [size](int64_t extent) {
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(extent - size) / 2.0));
  };
  return ResizedPart(picture, width, height, {begin(width), begin(height), size, size});
}

// Mean and deviation of channels in [0, 1].
struct Normalisation {
  std::array<float, kChannels> mean, deviation;
};
constexpr Normalisation kNone = {{0, 0, 0}, {1, 1, 1}};
constexpr Normalisation kImagenet = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

// The data set; thread-safe.
class PictureDataset final : public Dataset {
 public:
  PictureDataset(std::vector<PictureFile> files, int64_t classes, const ImageOptions& options)
      : files_(std::move(files)), classes_(classes), options_(options) {}

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  int64_t classes() const override { return classes_; }
  Shape sample_shape() const override { return {1, options_.size, options_.size, kChannels}; }
  bool may_flip() const override { return true; }
  bool crops_anywhere() const override { return options_.crop == PictureCrop::kRandomResized; }
  absl::Status status() const override { return error_.Get(); }

  void Labels(int64_t sample, const Augmentation& /*augmentation*/,
              absl::Span<int32_t> out) const override {
    out[0] = files_[static_cast<size_t>(sample)].label;
  }

  void Load(int64_t sample, const Augmentation& augmentation,
            absl::Span<float> out) const override {
    const absl::StatusOr<Picture> picture =
        Read(files_[static_cast<size_t>(sample)].path, augmentation);
    error_.Update(picture.status());
    if (!picture.ok()) return;
    const int size = picture->width;
    const Normalisation& normal =
        options_.normalize == PictureNormalize::kImagenet ? kImagenet : kNone;
    float* to = out.data();
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        const uint8_t* from = picture->row(y) + kChannels * (augmentation.flip ? size - 1 - x : x);
        for (size_t c = 0; c < kChannels; ++c) {
          *to++ = (static_cast<float>(from[c]) / 255 - normal.mean[c]) / normal.deviation[c];
        }
      }
    }
  }

  uint64_t digest() const override {
    Digest digest;
    for (const PictureFile& file : files_) {
      const std::string name = fs::path(file.path).filename().string();
      digest.Add(name.data(), name.size());
      digest.AddWord(file.bytes);
      digest.AddWord(static_cast<uint64_t>(file.label));
    }
    for (const int64_t word : {classes_, options_.size, options_.resize}) {
      digest.AddWord(static_cast<uint64_t>(word));
    }
    digest.AddWord(static_cast<uint64_t>(options_.crop));
    digest.AddWord(static_cast<uint64_t>(options_.normalize));
    return digest.value();
  }

 private:
  absl::StatusOr<Picture> Read(const std::string& path, const Augmentation& augmentation) const {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
    ASSIGN_OR_RETURN(const Picture picture, Annotated(DecodePicture(bytes), path));
    if (augmentation.crop == 0) return Middle(picture, options_);
    const auto size = static_cast<int>(options_.size);
    return Resized(picture, RandomPart(picture, augmentation.crop), size, size);
  }

  const std::vector<PictureFile> files_;
  const int64_t classes_;
  const ImageOptions options_;
  mutable FirstError error_;
};

std::unique_ptr<Dataset> Kept(const PictureFiles& all, const SampleRange& range,
                              const ImageOptions& options) {
  std::vector<PictureFile> files(all.files.begin() + range.first, all.files.begin() + range.last);
  return std::make_unique<PictureDataset>(std::move(files),
                                          static_cast<int64_t>(all.classes.size()), options);
}

}  // namespace

absl::StatusOr<CorpusSize> MeasureImageFolder(const DataOptions& options) {
  ASSIGN_OR_RETURN(const Folders folders, ReadFolders(options));
  return SizeOf(folders);
}

absl::StatusOr<DataSplits> LoadImageFolder(const DataOptions& options) {
  RETURN_IF_ERROR(CheckImageOptions(options.images));
  ASSIGN_OR_RETURN(const Folders folders, ReadFolders(options));
  RETURN_IF_ERROR(CheckPlannedSamples(options.dir, SizeOf(folders), options.text.size));
  const PictureFiles& train = folders.train;
  ASSIGN_OR_RETURN(const ImageParts parts,
                   PartsOf(absl::StrCat("the training pictures of ", options.dir),
                           static_cast<int64_t>(train.files.size()), options));
  DataSplits splits;
  splits.train = Kept(train, parts.train, options.images);
  if (options.held_out > 0) {
    splits.test = Kept(train, parts.held_out, options.images);
    return splits;
  }
  const auto tests = static_cast<int64_t>(folders.test.files.size());
  RETURN_IF_ERROR(
      CheckLimit(absl::StrCat("the test pictures of ", options.dir), tests, options.test_limit));
  splits.test = Kept(folders.test, FirstOf(tests, options.test_limit), options.images);
  return splits;
}

}  // namespace thinwire
