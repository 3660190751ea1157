#include "data/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/digest_pieces.h"
#include "base/file.h"
#include "base/status.h"

namespace thinwire {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

constexpr char kMagic[] = "thinwire tokens\n";
constexpr size_t kMagicBytes = sizeof(kMagic) - 1;
constexpr int64_t kIdBytes = sizeof(int32_t);
constexpr int64_t kIdsAtOnce = int64_t{1} << 18;

struct Header {
  char magic[kMagicBytes];
  uint32_t ids_low, ids_high;  // halves of their number, so that the struct has no padding
  uint32_t crc;
};
static_assert(sizeof(Header) == kMagicBytes + 12);

Header HeaderOf(uint64_t ids, uint32_t crc) {
  Header header;
  std::memcpy(header.magic, kMagic, kMagicBytes);
  header.ids_low = static_cast<uint32_t>(ids);
  header.ids_high = static_cast<uint32_t>(ids >> 32);
  header.crc = crc;
  return header;
}

std::string_view BytesOf(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

absl::Status ReadIds(const KeptFile& kept, int64_t first, absl::Span<int32_t> out) {
  const int64_t offset = static_cast<int64_t>(sizeof(Header)) + first * kIdBytes;
  return ReadAt(kept.file.get(), kept.path, offset, out.data(), out.size() * kIdBytes);
}

// Hands `count` ids from number `first` on to `take`, in pieces.
template <typename Take>
absl::Status ForEachPiece(const KeptFile& kept, int64_t first, int64_t count, const Take& take) {
  std::vector<int32_t> piece;
  for (const int64_t end = first + count; first < end; first += kIdsAtOnce) {
    piece.resize(static_cast<size_t>(std::min(kIdsAtOnce, end - first)));
    RETURN_IF_ERROR(ReadIds(kept, first, absl::MakeSpan(piece)));
    take(piece);
  }
  return absl::OkStatus();
}

absl::Status Write(const KeptFile& kept, const TokenFile::Source& source, absl::Status* of_file) {
  const auto noted = [of_file](const absl::Status& status) { return *of_file = status; };
  uint64_t count = 0;
  uint32_t crc = 0;
  const auto write = [&kept](std::string_view bytes) {
    return WriteAll(kept.file.get(), kept.path, bytes);
  };
  RETURN_IF_ERROR(noted(write(BytesOf(HeaderOf(0, 0)))));
  const absl::Status handed = source([&](absl::Span<const int32_t> ids) {
    const size_t bytes = ids.size() * kIdBytes;
    count += ids.size();
    crc = ExtendCrc32c(crc, ids.data(), bytes);
    return noted(write({reinterpret_cast<const char*>(ids.data()), bytes}));
  });
  RETURN_IF_ERROR(*of_file);  // the source may have said at which part that was
  RETURN_IF_ERROR(handed);
  if (lseek(kept.file.get(), 0, SEEK_SET) != 0) {
    return noted(FileError(kept.path, "cannot write", errno));
  }
  return noted(write(BytesOf(HeaderOf(count, crc))));
}

// Returns the number of ids of a file that is what Write made.
std::optional<int64_t> CheckedSize(const KeptFile& kept, int32_t vocabulary) {
  struct stat about;
  Header header;
  if (fstat(kept.file.get(), &about) != 0) return std::nullopt;
  const int64_t bytes = about.st_size - static_cast<int64_t>(sizeof(header));
  if (bytes < 0 || bytes % kIdBytes != 0 ||
      !ReadAt(kept.file.get(), kept.path, 0, &header, sizeof(header)).ok()) {
    return std::nullopt;
  }
  uint32_t crc = 0;
  bool are_known = true;
  const auto is_known = [vocabulary](int32_t id) { return 0 <= id && id < vocabulary; };
  const int64_t ids = bytes / kIdBytes;
  const absl::Status read = ForEachPiece(kept, 0, ids, [&](const std::vector<int32_t>& piece) {
    crc = ExtendCrc32c(crc, piece.data(), piece.size() * kIdBytes);
    are_known = are_known && std::all_of(piece.begin(), piece.end(), is_known);
  });
  const Header wanted = HeaderOf(static_cast<uint64_t>(ids), crc);
  const bool is_good = read.ok() && are_known && BytesOf(header) == BytesOf(wanted);
  return is_good ? std::make_optional(ids) : std::nullopt;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TokenFile>> TokenFile::Open(const std::string& folder,
                                                                 const std::string& name,
                                                                 int32_t vocabulary,
                                                                 const Source& source) {
  std::optional<int64_t> size;
  const auto is_good = [&](const KeptFile& file) {
    size = CheckedSize(file, vocabulary);
    return size.has_value();
  };
  const auto write = [&source](const KeptFile& file, absl::Status* of_file) {
    return Write(file, source, of_file);
  };
  ASSIGN_OR_RETURN(KeptFile file,
                   OpenOrWrite(folder, absl::StrCat(name, ".tokens"), is_good, write));
  return std::shared_ptr<const TokenFile>(new TokenFile(std::move(file), *size));
}

absl::Status TokenFile::Read(int64_t first, absl::Span<int32_t> out) const {
  return ReadIds(file_, first, out);
}

absl::Status TokenFile::AddTo(int64_t first, int64_t count, Digest* digest) const {
  static_assert(kIdsAtOnce * kIdBytes % DigestPieces::kBlockBytes == 0);
  DigestPieces pieces(digest, static_cast<size_t>(count * kIdBytes));
  if (count == 0) pieces.Add(nullptr, 0);
  return ForEachPiece(file_, first, count, [&pieces](const std::vector<int32_t>& piece) {
    pieces.Add(piece.data(), piece.size() * kIdBytes);
  });
}

}  // namespace thinwire
