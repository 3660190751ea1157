#include "data/id_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/owned_descriptor.h"
#include "base/stand_in.h"
#include "base/status.h"

namespace thinwire {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

constexpr size_t kHeaderWords = 256;
using Header = std::array<uint32_t, kHeaderWords>;
constexpr int64_t kIdsAtOnce = int64_t{1} << 18;

struct Format {
  uint32_t magic, version;
  IdType type;
};
constexpr Format kFormats[] = {{20240520, 1, IdType::kUint16}, {20240801, 7, IdType::kUint32}};

int64_t WidthOf(IdType type) { return type == IdType::kUint16 ? 2 : 4; }

struct Opened {
  OwnedDescriptor file;
  int64_t bytes;
};

absl::StatusOr<Opened> OpenFile(const std::string& path) {
  ASSIGN_OR_RETURN(OwnedDescriptor file, OpenRegular(path));
  struct stat about;
  if (fstat(file.get(), &about) != 0) return FileError(path, "cannot read", errno);
  return Opened{std::move(file), about.st_size};
}

// Returns the format whose number `header` begins with; null if there is none.
const Format* FormatOf(const Header& header) {
  for (const Format& format : kFormats) {
    if (format.magic == header[0]) return &format;
  }
  return nullptr;
}

absl::Status CheckHeader(const std::string& path, const Header& header, const Format& format,
                         IdType type, int64_t bytes) {
  const auto ids = static_cast<int64_t>(header[2]);
  const int64_t wanted = static_cast<int64_t>(sizeof(Header)) + ids * WidthOf(format.type);
  if (header[1] != format.version) {
    return absl::DataLossError(absl::StrCat(path, ": its header has version ", header[1], ", want ",
                                            format.version, " with ", format.magic));
  }
  if (type != IdType::kHeader && type != format.type) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": its header says ", Name(format.type),
                                                   ", but data.type is ", Name(type)));
  }
  if (bytes == wanted) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has ", bytes, " bytes, want ", wanted,
                                          " for the ", ids, " ids that its header says"));
}

absl::Status CheckBare(const std::string& path, IdType type, int64_t bytes) {
  if (type == IdType::kHeader) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has no header of llm.c: want data.type: uint16 or uint32, of its ids"));
  }
  if (bytes % WidthOf(type) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, " has ", bytes, " bytes, want ids of ",
                                                 WidthOf(type), " bytes (data.type: ", Name(type),
                                                 ")"));
}

// Widens ids of type Id, which lie at `from`, to all of `ids`.
template <typename Id>
void Widen(const char* from, absl::Span<int32_t> ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    Id id = 0;
    std::memcpy(&id, from + i * sizeof(Id), sizeof(Id));
    ids[i] = static_cast<int32_t>(id);
  }
}

}  // namespace

absl::StatusOr<IdFiles::File> IdFiles::Inspect(const std::string& path, IdType type) {
  ASSIGN_OR_RETURN(const Opened opened, OpenFile(path));
  File file{path, opened.bytes, 0, WidthOf(type), 0};
  Header header = {};
  const size_t met = std::min(sizeof(Header), static_cast<size_t>(opened.bytes));
  std::string head(met, '\0');
  RETURN_IF_ERROR(ReadAt(opened.file.get(), path, 0, head.data(), met));
  std::memcpy(header.data(), head.data(), met);
  const Format* const format = FormatOf(header);
  if (format == nullptr) {
    RETURN_IF_ERROR(CheckNoStandIn(path, head));
    RETURN_IF_ERROR(CheckBare(path, type, opened.bytes));
  } else {
    RETURN_IF_ERROR(CheckHeader(path, header, *format, type, opened.bytes));
    file.width = WidthOf(format->type);
    file.header_bytes = sizeof(Header);
  }
  if (file.bytes > file.header_bytes) return file;
  return absl::InvalidArgumentError(absl::StrCat(path, " has no ids, want at least one"));
}

absl::StatusOr<std::shared_ptr<IdFiles>> IdFiles::Open(const std::vector<std::string>& paths,
                                                       IdType type) {
  auto files = std::make_shared<IdFiles>();
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(File file, Inspect(path, type));
    file.first = files->size_;
    files->size_ += (file.bytes - file.header_bytes) / file.width;
    files->files_.push_back(std::move(file));
  }
  return files;
}

absl::Status IdFiles::CheckIds(const File& file, int64_t first,
                               absl::Span<const int32_t> ids) const {
  const auto limit = static_cast<uint32_t>(vocabulary_);
  const auto beyond = [limit](int32_t id) { return static_cast<uint32_t>(id) >= limit; };
  if (std::none_of(ids.begin(), ids.end(), beyond)) return absl::OkStatus();
  const auto at = std::find_if(ids.begin(), ids.end(), beyond);
  return absl::InvalidArgumentError(absl::StrCat(file.path, ": number ", first + (at - ids.begin()),
                                                 " is ", static_cast<uint32_t>(*at), ", want 0 to ",
                                                 limit - 1, ", a token id"));
}

absl::Status IdFiles::ReadFrom(const File& file, int64_t first, absl::Span<int32_t> out) const {
  ASSIGN_OR_RETURN(const Opened opened, OpenFile(file.path));
  if (opened.bytes != file.bytes) {
    return absl::DataLossError(absl::StrCat(file.path, " has ", opened.bytes, " bytes, want ",
                                            file.bytes, ", as when it was opened"));
  }
  const size_t bytes = out.size() * static_cast<size_t>(file.width);
  std::string read(bytes, '\0');
  RETURN_IF_ERROR(ReadAt(opened.file.get(), file.path, file.header_bytes + first * file.width,
                         read.data(), bytes));
  file.width == 2 ? Widen<uint16_t>(read.data(), out) : Widen<uint32_t>(read.data(), out);
  return CheckIds(file, first, out);
}

absl::Status IdFiles::Read(int64_t first, absl::Span<int32_t> out) const {
  auto file = std::upper_bound(files_.begin(), files_.end(), first,
                               [](int64_t id, const File& other) { return id < other.first; });
  for (--file; !out.empty(); ++file) {
    const int64_t end = file + 1 == files_.end() ? size_ : (file + 1)->first;
    const size_t here = std::min(out.size(), static_cast<size_t>(end - first));
    RETURN_IF_ERROR(ReadFrom(*file, first - file->first, out.subspan(0, here)));
    out.remove_prefix(here);
    first += static_cast<int64_t>(here);
  }
  return absl::OkStatus();
}

std::vector<IdFiles::Extent> IdFiles::extents() const {
  std::vector<Extent> extents;
  for (const File& file : files_) {
    extents.push_back({file.path, file.first, (file.bytes - file.header_bytes) / file.width});
  }
  return extents;
}

absl::StatusOr<int32_t> IdFiles::GreatestId() const {
  int32_t greatest = 0;
  std::vector<int32_t> ids;
  for (int64_t first = 0; first < size_; first += kIdsAtOnce) {
    ids.resize(static_cast<size_t>(std::min(kIdsAtOnce, size_ - first)));
    RETURN_IF_ERROR(Read(first, absl::MakeSpan(ids)));
    greatest = std::max(greatest, *std::max_element(ids.begin(), ids.end()));
  }
  return greatest;
}

}  // namespace thinwire
