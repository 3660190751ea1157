#include "data/document_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/status.h"
#include "data/temporary_file.h"

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

// Adds the words that were set aside in a file.
absl::Status AddWords(TemporaryFile* file, WordWriter* writer) {
  RETURN_IF_ERROR(file->Flush());
  std::vector<uint32_t> piece;
  const int64_t words = file->size() / kWord;
  for (int64_t done = 0; done < words; done += static_cast<int64_t>(piece.size())) {
    piece.resize(std::min(kWordsAtOnce, static_cast<size_t>(words - done)));
    RETURN_IF_ERROR(file->Read(done * kWord, piece.data(), piece.size() * kWord));
    RETURN_IF_ERROR(writer->Add(piece));
  }
  return absl::OkStatus();
}

// Returns a text as words, the last of which ends in zeros.
std::vector<uint32_t> WordsOf(const std::string& text) {
  std::vector<uint32_t> words((text.size() + kWord - 1) / kWord);
  if (!text.empty()) std::memcpy(words.data(), text.data(), text.size());
  return words;
}

std::string TextOf(const std::vector<uint32_t>& words) {
  std::string text(words.size() * kWord, '\0');
  if (!words.empty()) std::memcpy(text.data(), words.data(), text.size());
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

// Writes all of a file, with the note that is there when the source has ended. Errors that are not
// the source's are also in *of_file.
absl::Status Write(const KeptFile& kept, const DocumentStore::Source& source,
                   const std::string& note, absl::Status* of_file) {
  const int file = kept.file.get();
  const std::string& path = kept.path;
  const auto noted = [of_file](const absl::Status& status) { return *of_file = status; };
  Header header = {};
  const std::string_view head(reinterpret_cast<const char*>(&header), sizeof(header));
  RETURN_IF_ERROR(noted(WriteAll(file, path, head)));
  WordWriter writer(file, path);
  auto lengths = TemporaryFile::In(FolderOf(path));
  RETURN_IF_ERROR(noted(lengths.status()));
  const absl::Status handed = source([&](absl::Span<const DocumentToken> document) -> absl::Status {
    if (document.size() > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", document.size(), " tokens, want fewer than 2^32"));
    }
    const auto length = static_cast<uint32_t>(document.size());
    ++header.documents;
    header.tokens += length;
    RETURN_IF_ERROR(noted(lengths->Append(&length, sizeof(length))));
    return noted(writer.Add(document));
  });
  RETURN_IF_ERROR(*of_file);  // the source may have said at which of its lines that was
  RETURN_IF_ERROR(handed);
  RETURN_IF_ERROR(noted(AddWords(&*lengths, &writer)));
  const std::vector<uint32_t> note_words = WordsOf(note);
  RETURN_IF_ERROR(noted(writer.Add(note_words)));
  RETURN_IF_ERROR(noted(writer.Flush()));
  std::memcpy(header.magic, kMagic, kMagicBytes);
  header.crc = writer.crc();
  header.note_words = static_cast<uint32_t>(note_words.size());
  if (lseek(file, 0, SEEK_SET) != 0) return noted(FileError(path, "cannot write", errno));
  return noted(WriteAll(file, path, head));
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

bool DocumentStore::Learn(const KeptFile& file, int64_t vocabulary, Contents* contents) {
  const std::optional<Header> header = HeaderOf(file.file.get(), file.path);
  if (!header) return false;
  *contents = {};
  contents->documents = static_cast<int64_t>(header->documents);
  contents->tokens = static_cast<int64_t>(header->tokens);
  WordReader reader(file.file.get(), file.path);
  bool are_known = true;
  const auto is_known = [vocabulary](uint32_t token) { return (token & ~kLearned) < vocabulary; };
  const auto check = [&](const std::vector<uint32_t>& piece) {
    are_known = are_known && std::all_of(piece.begin(), piece.end(), is_known);
  };
  uint64_t sum = 0;
  const auto add = [&sum](const std::vector<uint32_t>& piece) {
    sum = std::accumulate(piece.begin(), piece.end(), sum);
  };
  std::vector<uint32_t> note;
  const auto append = [&note](const std::vector<uint32_t>& piece) {
    note.insert(note.end(), piece.begin(), piece.end());
  };
  const bool is_read = reader.Read(header->tokens, check) && reader.Read(header->documents, add) &&
                       reader.Read(header->note_words, append);
  contents->note = TextOf(note);
  return is_read && are_known && reader.crc() == header->crc && sum == header->tokens;
}

absl::StatusOr<std::shared_ptr<const DocumentStore>> DocumentStore::Open(const std::string& folder,
                                                                         const std::string& name,
                                                                         int64_t vocabulary,
                                                                         const Source& source,
                                                                         const std::string& note) {
  Contents contents;
  const auto is_good = [&](const KeptFile& file) { return Learn(file, vocabulary, &contents); };
  const auto write = [&](const KeptFile& file, absl::Status* of_file) {
    return Write(file, source, note, of_file);
  };
  ASSIGN_OR_RETURN(KeptFile file,
                   OpenOrWrite(folder, absl::StrCat(name, ".tokens"), is_good, write));
  return std::shared_ptr<const DocumentStore>(
      new DocumentStore(std::move(file), std::move(contents)));
}

absl::Status DocumentStore::Read(int64_t first, absl::Span<DocumentToken> out) const {
  const int64_t offset = static_cast<int64_t>(sizeof(Header)) + first * kWord;
  return ReadAt(file_.file.get(), file_.path, offset, out.data(), out.size() * kWord);
}

absl::Status DocumentStore::ReadLengths(int64_t first, absl::Span<uint32_t> out) const {
  return Read(contents_.tokens + first, out);
}

}  // namespace thinwire
