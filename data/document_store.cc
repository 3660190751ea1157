#include "data/document_store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/status.h"

namespace thinwire {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

constexpr char kMagic[] = "thinwire docs 1\n";
constexpr size_t kMagicBytes = sizeof(kMagic) - 1;
constexpr int64_t kWord = sizeof(DocumentToken);
constexpr size_t kWordsAtOnce = size_t{1} << 18;

struct Header {
  char magic[kMagicBytes];
  uint64_t documents, tokens;
  uint32_t crc, zero;
};
static_assert(sizeof(Header) == kMagicBytes + 24);

// Reads `bytes` at `offset`; false if the file ends before, or cannot be read (errno).
bool ReadAt(int file, int64_t offset, void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(file, at, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = EIO;
    if (got <= 0) return false;
    at += got;
    offset += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// Writes words in large portions and knows their CRC.
class WordWriter {
 public:
  WordWriter(int file, std::string path) : file_(file), path_(std::move(path)) {}

  absl::Status Add(absl::Span<const uint32_t> words) {
    waiting_.insert(waiting_.end(), words.begin(), words.end());
    return waiting_.size() < kWordsAtOnce ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    const std::string_view bytes(reinterpret_cast<const char*>(waiting_.data()),
                                 waiting_.size() * sizeof(uint32_t));
    crc_ = ExtendCrc32c(crc_, bytes.data(), bytes.size());
    waiting_.clear();  // the memory stays until the next Add
    return WriteAll(file_, path_, bytes);
  }
  uint32_t crc() const { return crc_; }

 private:
  const int file_;
  const std::string path_;
  std::vector<uint32_t> waiting_;
  uint32_t crc_ = 0;
};

// Writes all of a file whose descriptor is `file`.
absl::Status Write(int file, const std::string& path, const DocumentStore::Source& source) {
  Header header = {};
  RETURN_IF_ERROR(WriteAll(file, path, {reinterpret_cast<const char*>(&header), sizeof(header)}));
  WordWriter writer(file, path);
  std::vector<uint32_t> lengths;
  RETURN_IF_ERROR(source([&](absl::Span<const DocumentToken> document) -> absl::Status {
    if (document.size() > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", document.size(), " tokens, want fewer than 2^32"));
    }
    lengths.push_back(static_cast<uint32_t>(document.size()));
    header.tokens += document.size();
    return writer.Add(document);
  }));
  RETURN_IF_ERROR(writer.Add(lengths));
  RETURN_IF_ERROR(writer.Flush());
  std::memcpy(header.magic, kMagic, kMagicBytes);
  header.documents = lengths.size();
  header.crc = writer.crc();
  if (lseek(file, 0, SEEK_SET) != 0) return FileError(path, "cannot write", errno);
  return WriteAll(file, path, {reinterpret_cast<const char*>(&header), sizeof(header)});
}

std::string TemporaryFolder() {
  std::error_code ignored;
  return std::filesystem::temp_directory_path(ignored).string();
}

// A new file; one that cannot be kept has a path only as long as it is written.
struct Draft {
  std::string path;
  OwnedDescriptor file;  // negative if none could be made
  bool is_kept;
};

// Makes FOLDER/.NAME.XXXXXX, hidden from who lists the folder, or else a file in that of temporary
// ones.
Draft MakeDraft(const std::string& folder, const std::string& name) {
  std::string path = absl::StrCat(folder, "/.", name, ".XXXXXX");
  int file = mkostemp(path.data(), O_CLOEXEC);
  if (file >= 0) return {path, OwnedDescriptor(file), true};
  path = absl::StrCat(TemporaryFolder(), "/thinwire_documents.XXXXXX");
  file = mkostemp(path.data(), O_CLOEXEC);
  return {path, OwnedDescriptor(file), false};
}

OwnedDescriptor OpenToRead(const std::string& path) {
  if (!CheckRegular(path).ok()) return OwnedDescriptor(-1);
  return OwnedDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

// Returns the header of a file that has as many words as it says.
std::optional<Header> HeaderOf(int file) {
  Header header;
  struct stat about;
  if (fstat(file, &about) != 0 || about.st_size < static_cast<int64_t>(sizeof(header)) ||
      !ReadAt(file, 0, &header, sizeof(header))) {
    return std::nullopt;
  }
  const auto bytes = static_cast<uint64_t>(about.st_size) - sizeof(header);
  const uint64_t words = bytes / kWord;
  const bool fits = std::memcmp(header.magic, kMagic, kMagicBytes) == 0 && bytes % kWord == 0 &&
                    header.tokens <= words && header.documents == words - header.tokens;
  return fits ? std::make_optional(header) : std::nullopt;
}

}  // namespace

bool DocumentStore::LearnLengths(int64_t vocabulary) {
  const std::optional<Header> header = HeaderOf(file_.get());
  if (!header) return false;
  tokens_ = static_cast<int64_t>(header->tokens);
  const uint64_t words = header->tokens + header->documents;
  const auto is_beyond = [vocabulary](uint32_t token) { return (token & ~kLearned) >= vocabulary; };
  uint32_t crc = 0;
  std::vector<uint32_t> piece;
  for (uint64_t at = 0; at < words; at += piece.size()) {
    const bool is_lengths = at >= header->tokens;
    const uint64_t left = (is_lengths ? words : header->tokens) - at;
    piece.resize(std::min<uint64_t>(kWordsAtOnce, left));
    const int64_t offset = sizeof(Header) + static_cast<int64_t>(at) * kWord;
    if (!ReadAt(file_.get(), offset, piece.data(), piece.size() * kWord)) return false;
    crc = ExtendCrc32c(crc, piece.data(), piece.size() * kWord);
    if (is_lengths) {
      lengths_.insert(lengths_.end(), piece.begin(), piece.end());
    } else if (std::any_of(piece.begin(), piece.end(), is_beyond)) {
      return false;
    }
  }
  const auto sum = std::accumulate(lengths_.begin(), lengths_.end(), uint64_t{0});
  return crc == header->crc && sum == header->tokens;
}

std::shared_ptr<const DocumentStore> DocumentStore::OpenFile(const std::string& path,
                                                             OwnedDescriptor file,
                                                             int64_t vocabulary) {
  if (file.get() < 0) return nullptr;
  std::shared_ptr<DocumentStore> store(new DocumentStore(path, std::move(file)));
  return store->LearnLengths(vocabulary) ? store : nullptr;
}

// Several processes may write the same file at once: each writes its own and renames it when
// complete.
absl::StatusOr<std::shared_ptr<const DocumentStore>> DocumentStore::Open(const std::string& folder,
                                                                         const std::string& name,
                                                                         int64_t vocabulary,
                                                                         const Source& source) {
  const std::string path = absl::StrCat(folder, "/", name, ".tokens");
  if (auto kept = OpenFile(path, OpenToRead(path), vocabulary)) return kept;
  Draft draft = MakeDraft(folder, name);
  if (draft.file.get() < 0) return FileError(draft.path, "cannot keep tokens", errno);
  fchmod(draft.file.get(), 0644);  // other readers of the text may use it, too
  const absl::Status written = Write(draft.file.get(), draft.path, source);
  const bool is_kept = written.ok() && draft.is_kept;
  if (!is_kept || std::rename(draft.path.c_str(), path.c_str()) != 0) {
    std::remove(draft.path.c_str());
  }
  RETURN_IF_ERROR(written);
  auto store = OpenFile(draft.path, std::move(draft.file), vocabulary);
  if (store != nullptr) return store;
  return absl::DataLossError(absl::StrCat(draft.path, " is not what was written to it"));
}

absl::Status DocumentStore::Read(int64_t first, absl::Span<DocumentToken> out) const {
  const int64_t offset = static_cast<int64_t>(sizeof(Header)) + first * kWord;
  if (ReadAt(file_.get(), offset, out.data(), out.size() * kWord)) return absl::OkStatus();
  return FileError(path_, "cannot read", errno);
}

}  // namespace thinwire
