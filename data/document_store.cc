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

constexpr char kMagic[] = "thinwire docs 2\n";
constexpr size_t kMagicBytes = sizeof(kMagic) - 1;
constexpr int64_t kWord = sizeof(DocumentToken);
constexpr size_t kWordsAtOnce = size_t{1} << 18;

struct Header {
  char magic[kMagicBytes];
  uint64_t documents, tokens;
  uint32_t crc, note_words;
};
static_assert(sizeof(Header) == kMagicBytes + 24);

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

// Reads what is behind a header in large portions and knows its CRC.
class WordReader {
 public:
  WordReader(int file, std::string path) : file_(file), path_(std::move(path)) {}

  // Hands the next `words` to `take`, in pieces. False if they cannot be read.
  template <typename Take>
  bool Read(uint64_t words, const Take& take) {
    for (; words > 0; words -= piece_.size()) {
      piece_.resize(std::min<uint64_t>(kWordsAtOnce, words));
      const size_t bytes = piece_.size() * kWord;
      if (!ReadAt(file_, path_, offset_, piece_.data(), bytes).ok()) return false;
      crc_ = ExtendCrc32c(crc_, piece_.data(), bytes);
      offset_ += static_cast<int64_t>(bytes);
      take(piece_);
    }
    return true;
  }
  uint32_t crc() const { return crc_; }

 private:
  const int file_;
  const std::string path_;
  std::vector<uint32_t> piece_;
  int64_t offset_ = sizeof(Header);
  uint32_t crc_ = 0;
};

auto AppendTo(std::vector<uint32_t>* all) {
  return [all](const std::vector<uint32_t>& piece) {
    all->insert(all->end(), piece.begin(), piece.end());
  };
}

// Returns a text as words, the last of which ends in zeros.
std::vector<uint32_t> WordsOf(const std::string& text) {
  std::vector<uint32_t> words((text.size() + kWord - 1) / kWord);
  std::memcpy(words.data(), text.data(), text.size());
  return words;
}

std::string TextOf(const std::vector<uint32_t>& words) {
  std::string text(words.size() * kWord, '\0');
  std::memcpy(text.data(), words.data(), text.size());
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

// What a file gets.
struct Content {
  const DocumentStore::Source& source;
  const std::string& note;  // complete when the source has ended
};

// Writes all of a file whose descriptor is `file`. Errors that are not the source's are also in
// *of_file.
absl::Status Write(int file, const std::string& path, const Content& content,
                   absl::Status* of_file) {
  const auto noted = [of_file](const absl::Status& status) { return *of_file = status; };
  Header header = {};
  const std::string_view head(reinterpret_cast<const char*>(&header), sizeof(header));
  RETURN_IF_ERROR(noted(WriteAll(file, path, head)));
  WordWriter writer(file, path);
  std::vector<uint32_t> lengths;
  const absl::Status handed =
      content.source([&](absl::Span<const DocumentToken> document) -> absl::Status {
        if (document.size() > std::numeric_limits<uint32_t>::max()) {
          return absl::InvalidArgumentError(
              absl::StrCat("has ", document.size(), " tokens, want fewer than 2^32"));
        }
        lengths.push_back(static_cast<uint32_t>(document.size()));
        header.tokens += document.size();
        return noted(writer.Add(document));
      });
  RETURN_IF_ERROR(*of_file);  // the source may have said at which of its lines that was
  RETURN_IF_ERROR(handed);
  RETURN_IF_ERROR(noted(writer.Add(lengths)));
  const std::vector<uint32_t> note = WordsOf(content.note);
  RETURN_IF_ERROR(noted(writer.Add(note)));
  RETURN_IF_ERROR(noted(writer.Flush()));
  std::memcpy(header.magic, kMagic, kMagicBytes);
  header.documents = lengths.size();
  header.crc = writer.crc();
  header.note_words = static_cast<uint32_t>(note.size());
  if (lseek(file, 0, SEEK_SET) != 0) return noted(FileError(path, "cannot write", errno));
  return noted(WriteAll(file, path, head));
}

std::string TemporaryFolder() {
  std::error_code ignored;
  return std::filesystem::temp_directory_path(ignored).string();
}

// A new file with documents, and why it has none.
struct Draft {
  std::string path;
  OwnedDescriptor file;
  absl::Status status, of_file;  // the latter: it could not be made or written
};

// Makes a file whose path is like `pattern`, and writes it. It gets the path `kept`, or none if
// that is empty.
Draft MakeDraft(std::string pattern, const std::string& kept, const Content& content) {
  const int file = mkostemp(pattern.data(), O_CLOEXEC);
  Draft draft{pattern, OwnedDescriptor(file), {}, {}};
  if (file < 0) {
    draft.status = draft.of_file = FileError(pattern, "cannot keep tokens", errno);
    return draft;
  }
  fchmod(file, 0644);  // other readers of the text may use it, too
  draft.status = Write(file, pattern, content, &draft.of_file);
  const bool is_kept = draft.status.ok() && !kept.empty();
  if (!is_kept || std::rename(pattern.c_str(), kept.c_str()) != 0) std::remove(pattern.c_str());
  return draft;
}

// Returns the header of a file that has as many words as it says.
std::optional<Header> HeaderOf(int file, const std::string& path) {
  Header header;
  struct stat about;
  if (fstat(file, &about) != 0 || about.st_size < static_cast<int64_t>(sizeof(header)) ||
      !ReadAt(file, path, 0, &header, sizeof(header)).ok()) {
    return std::nullopt;
  }
  const auto bytes = static_cast<uint64_t>(about.st_size) - sizeof(header);
  const uint64_t words = bytes / kWord;
  const bool fits = std::memcmp(header.magic, kMagic, kMagicBytes) == 0 && bytes % kWord == 0 &&
                    header.tokens <= words && header.note_words <= words - header.tokens &&
                    header.documents == words - header.tokens - header.note_words;
  return fits ? std::make_optional(header) : std::nullopt;
}

}  // namespace

bool DocumentStore::Learn(int64_t vocabulary) {
  const std::optional<Header> header = HeaderOf(file_.get(), path_);
  if (!header) return false;
  tokens_ = static_cast<int64_t>(header->tokens);
  WordReader reader(file_.get(), path_);
  bool are_known = true;
  const auto is_known = [vocabulary](uint32_t token) { return (token & ~kLearned) < vocabulary; };
  const auto check = [&](const std::vector<uint32_t>& piece) {
    are_known = are_known && std::all_of(piece.begin(), piece.end(), is_known);
  };
  std::vector<uint32_t> note;
  const bool is_read = reader.Read(header->tokens, check) &&
                       reader.Read(header->documents, AppendTo(&lengths_)) &&
                       reader.Read(header->note_words, AppendTo(&note));
  note_ = TextOf(note);
  const auto sum = std::accumulate(lengths_.begin(), lengths_.end(), uint64_t{0});
  return is_read && are_known && reader.crc() == header->crc && sum == header->tokens;
}

std::shared_ptr<const DocumentStore> DocumentStore::OpenFile(const std::string& path,
                                                             OwnedDescriptor file,
                                                             int64_t vocabulary) {
  std::shared_ptr<DocumentStore> store(new DocumentStore(path, std::move(file)));
  return store->Learn(vocabulary) ? store : nullptr;
}

// Several processes may write the same file at once: each writes its own and renames it when
// complete.
absl::StatusOr<std::shared_ptr<const DocumentStore>> DocumentStore::Open(const std::string& folder,
                                                                         const std::string& name,
                                                                         int64_t vocabulary,
                                                                         const Source& source,
                                                                         const std::string& note) {
  const std::string path = absl::StrCat(folder, "/", name, ".tokens");
  if (absl::StatusOr<OwnedDescriptor> file = OpenRegular(path); file.ok()) {
    if (auto kept = OpenFile(path, *std::move(file), vocabulary)) return kept;
  }
  const auto opened =
      [vocabulary](Draft draft) -> absl::StatusOr<std::shared_ptr<const DocumentStore>> {
    RETURN_IF_ERROR(draft.status);
    auto store = OpenFile(draft.path, std::move(draft.file), vocabulary);
    if (store != nullptr) return store;
    return absl::DataLossError(absl::StrCat(draft.path, " is not what was written to it"));
  };
  const Content content = {source, note};
  Draft draft = MakeDraft(absl::StrCat(folder, "/.", name, ".tokens.XXXXXX"), path, content);
  if (draft.of_file.ok()) return opened(std::move(draft));
  return opened(MakeDraft(TemporaryFolder() + "/thinwire_documents.XXXXXX", "", content));
}

absl::Status DocumentStore::Read(int64_t first, absl::Span<DocumentToken> out) const {
  const int64_t offset = static_cast<int64_t>(sizeof(Header)) + first * kWord;
  return ReadAt(file_.get(), path_, offset, out.data(), out.size() * kWord);
}

}  // namespace thinwire
