#include "data/masked_ids.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/owned_descriptor.h"
#include "base/stand_in.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr char kMask[] = ".mask";
constexpr int64_t kIdsAtOnce = int64_t{1} << 18;

// A mask, and the ids for which it stands.
struct Mask {
  std::string path;
  int64_t first, ids;

  int64_t bytes() const { return (ids + 7) / 8; }
};

absl::StatusOr<OwnedDescriptor> OpenMask(const Mask& mask) {
  ASSIGN_OR_RETURN(OwnedDescriptor file, OpenRegular(mask.path));
  struct stat about;
  if (fstat(file.get(), &about) != 0) return FileError(mask.path, "cannot read", errno);
  if (about.st_size == mask.bytes()) return file;
  return StandInOr(mask.path, absl::DataLossError(absl::StrCat(
                                  mask.path, " has ", about.st_size, " bytes, want ", mask.bytes(),
                                  ", a bit for each of the ", mask.ids, " ids beside it")));
}

// Makes those of `ids`, which begin with number `first` of the mask, kNoLabel that it lacks.
absl::Status Apply(const Mask& mask, int64_t first, absl::Span<int32_t> ids) {
  ASSIGN_OR_RETURN(const OwnedDescriptor file, OpenMask(mask));
  const int64_t begin = first / 8;
  const int64_t end = (first + static_cast<int64_t>(ids.size()) + 7) / 8;
  std::vector<uint8_t> bits(static_cast<size_t>(end - begin));
  RETURN_IF_ERROR(ReadAt(file.get(), mask.path, begin, bits.data(), bits.size()));
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t bit = static_cast<size_t>(first % 8) + i;
    if ((bits[bit / 8] >> (bit % 8) & 1) == 0) ids[i] = kNoLabel;
  }
  return absl::OkStatus();
}

class MaskedIds final : public TokenSource {
 public:
  MaskedIds(std::shared_ptr<const IdFiles> ids, std::vector<Mask> masks)
      : ids_(std::move(ids)), masks_(std::move(masks)) {}

  int64_t size() const override { return ids_->size(); }
  bool may_lack_labels() const override { return true; }
  absl::Status Read(int64_t first, absl::Span<int32_t> out) const override {
    return ids_->Read(first, out);
  }
  absl::Status ReadLabels(int64_t first, absl::Span<int32_t> out) const override {
    RETURN_IF_ERROR(Read(first, out));
    auto mask = std::upper_bound(masks_.begin(), masks_.end(), first,
                                 [](int64_t id, const Mask& other) { return id < other.first; });
    for (--mask; !out.empty(); ++mask) {
      const auto left = static_cast<size_t>(mask->first + mask->ids - first);
      const size_t here = std::min(out.size(), left);
      RETURN_IF_ERROR(Apply(*mask, first - mask->first, out.subspan(0, here)));
      out.remove_prefix(here);
      first += static_cast<int64_t>(here);
    }
    return absl::OkStatus();
  }
  absl::Status AddTo(int64_t first, int64_t count, Digest* digest) const override {
    RETURN_IF_ERROR(ids_->AddTo(first, count, digest));
    std::vector<int32_t> piece;
    for (const int64_t end = first + count; first < end; first += kIdsAtOnce) {
      piece.resize(static_cast<size_t>(std::min(kIdsAtOnce, end - first)));
      RETURN_IF_ERROR(ReadLabels(first, absl::MakeSpan(piece)));
      digest->Add(piece.data(), piece.size() * sizeof(int32_t));
    }
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const IdFiles> ids_;
  const std::vector<Mask> masks_;
};

absl::Status SharedMask(const std::string& first, const std::string& second,
                        const std::string& mask) {
  return absl::InvalidArgumentError(
      absl::StrCat(first, " and ", second, " have the same mask beside them, ", mask,
                   ": want names that differ before their last points, or data.loss_on: all"));
}

}  // namespace

std::string MaskBeside(const std::string& path) {
  return std::filesystem::path(path).replace_extension(kMask).string();
}

bool IsMask(const std::string& path) { return std::filesystem::path(path).extension() == kMask; }

absl::StatusOr<std::shared_ptr<const TokenSource>> WithMasks(std::shared_ptr<const IdFiles> ids) {
  std::vector<Mask> masks;
  std::map<std::string, std::string> files;  // by their masks
  std::string without;
  for (const IdFiles::Extent& extent : ids->extents()) {
    const Mask mask = {MaskBeside(extent.path), extent.first, extent.ids};
    std::error_code ignored;  // opening reports it
    if (!std::filesystem::exists(mask.path, ignored)) {
      without = extent.path;
      continue;
    }
    const auto file = files.emplace(mask.path, extent.path);
    if (!file.second) return SharedMask(file.first->second, extent.path, mask.path);
    RETURN_IF_ERROR(OpenMask(mask).status());
    masks.push_back(mask);
  }
  if (masks.empty()) return ids;
  if (without.empty()) return std::make_shared<MaskedIds>(std::move(ids), std::move(masks));
  return absl::InvalidArgumentError(absl::StrCat(without, " has no ", MaskBeside(without),
                                                 " beside it, but there is ", masks[0].path,
                                                 ": want a mask of every file or of none"));
}

}  // namespace thinwire
