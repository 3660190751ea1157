#include "data/sample_index.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/status.h"
#include "data/temporary_file.h"

namespace thinwire {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

constexpr char kMagic[] = "thinwire packs1\n";
constexpr size_t kMagicBytes = sizeof(kMagic) - 1;
constexpr int64_t kWord = sizeof(uint64_t);
constexpr uint64_t kWordsAtOnce = uint64_t{1} << 17;

struct Header {
  char magic[kMagicBytes];
  uint64_t samples, pieces;
  uint32_t pieces_crc, begins_crc;

  uint64_t begins() const { return samples == pieces ? 0 : samples + 1; }
};
static_assert(sizeof(Header) == kMagicBytes + 24);

std::string_view BytesOf(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

// Writes words in large portions and knows their CRC.
class WordWriter {
 public:
  explicit WordWriter(const KeptFile& kept) : kept_(kept) {}

  absl::Status Add(uint64_t word) {
    waiting_.push_back(word);
    return waiting_.size() < kWordsAtOnce ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    const size_t bytes = waiting_.size() * sizeof(uint64_t);
    crc_ = ExtendCrc32c(crc_, waiting_.data(), bytes);
    const std::string_view all(reinterpret_cast<const char*>(waiting_.data()), bytes);
    RETURN_IF_ERROR(WriteAll(kept_.file.get(), kept_.path, all));
    waiting_.clear();
    return absl::OkStatus();
  }
  uint32_t crc() const { return crc_; }

 private:
  const KeptFile& kept_;
  std::vector<uint64_t> waiting_;
  uint32_t crc_ = 0;
};

// Reads words one by one, in large portions, and knows the CRC of those that it has read.
class WordReader {
 public:
  WordReader(const KeptFile& kept, int64_t offset, uint64_t words)
      : kept_(kept), offset_(offset), left_(words) {}

  // Returns the next word. OutOfRange behind the last.
  absl::StatusOr<uint64_t> Next() {
    if (at_ == read_.size()) {
      if (left_ == 0) return absl::OutOfRangeError("no more words");
      read_.resize(std::min(kWordsAtOnce, left_));
      const size_t bytes = read_.size() * sizeof(uint64_t);
      RETURN_IF_ERROR(ReadAt(kept_.file.get(), kept_.path, offset_, read_.data(), bytes));
      crc_ = ExtendCrc32c(crc_, read_.data(), bytes);
      offset_ += static_cast<int64_t>(bytes);
      left_ -= read_.size();
      at_ = 0;
    }
    return read_[at_++];
  }
  bool is_at_end() const { return at_ == read_.size() && left_ == 0; }
  uint32_t crc() const { return crc_; }

 private:
  const KeptFile& kept_;
  int64_t offset_;
  uint64_t left_;
  std::vector<uint64_t> read_;
  size_t at_ = 0;
  uint32_t crc_ = 0;
};

// Writes begins that were set aside, and the last one.
absl::Status WriteBegins(const TemporaryFile& begins, uint64_t samples, uint64_t pieces,
                         WordWriter* writer) {
  std::vector<uint64_t> read;
  for (uint64_t done = 0; done < samples; done += read.size()) {
    read.resize(std::min(kWordsAtOnce, samples - done));
    RETURN_IF_ERROR(begins.Read(static_cast<int64_t>(done) * kWord, read.data(),
                                read.size() * sizeof(uint64_t)));
    for (const uint64_t begin : read) RETURN_IF_ERROR(writer->Add(begin));
  }
  RETURN_IF_ERROR(writer->Add(pieces));
  return writer->Flush();
}

absl::Status Write(const KeptFile& kept, const SampleIndex::Source& source) {
  const std::string folder = FolderOf(kept.path);
  Header header = {};
  RETURN_IF_ERROR(WriteAll(kept.file.get(), kept.path, BytesOf(header)));
  ASSIGN_OR_RETURN(TemporaryFile begins, TemporaryFile::In(folder));
  WordWriter pieces(kept);
  RETURN_IF_ERROR(source(folder, [&](const Stretch& piece, bool begins_sample) -> absl::Status {
    if (begins_sample) {
      RETURN_IF_ERROR(begins.Append(&header.pieces, sizeof(header.pieces)));
      ++header.samples;
    }
    ++header.pieces;
    return pieces.Add(WordOf(piece));
  }));
  RETURN_IF_ERROR(pieces.Flush());
  header.pieces_crc = pieces.crc();
  if (header.begins() > 0) {
    RETURN_IF_ERROR(begins.Flush());
    WordWriter writer(kept);
    RETURN_IF_ERROR(WriteBegins(begins, header.samples, header.pieces, &writer));
    header.begins_crc = writer.crc();
  }
  std::memcpy(header.magic, kMagic, kMagicBytes);
  if (lseek(kept.file.get(), 0, SEEK_SET) != 0) return FileError(kept.path, "cannot write", errno);
  return WriteAll(kept.file.get(), kept.path, BytesOf(header));
}

// Returns the header of a file that has as many words as it says.
std::optional<Header> HeaderOf(const KeptFile& kept) {
  Header header;
  struct stat about;
  if (fstat(kept.file.get(), &about) != 0 || about.st_size < static_cast<int64_t>(sizeof(header)) ||
      !ReadAt(kept.file.get(), kept.path, 0, &header, sizeof(header)).ok()) {
    return std::nullopt;
  }
  const auto bytes = static_cast<uint64_t>(about.st_size) - sizeof(header);
  const uint64_t words = bytes / kWord;
  const bool fits = std::memcmp(header.magic, kMagic, kMagicBytes) == 0 && bytes % kWord == 0 &&
                    header.pieces <= words && header.samples <= header.pieces &&
                    header.begins() == words - header.pieces;
  return fits ? std::make_optional(header) : std::nullopt;
}

int64_t BeginsAt(int64_t pieces) { return static_cast<int64_t>(sizeof(Header)) + pieces * kWord; }

// Checks a file's samples one by one.
class Inspection {
 public:
  Inspection(const KeptFile& kept, const Header& header, const SampleIndex::Bounds& bounds)
      : header_(header),
        bounds_(bounds),
        pieces_(kept, sizeof(Header), header.pieces),
        begins_(kept, BeginsAt(static_cast<int64_t>(header.pieces)), header.begins()) {}

  absl::StatusOr<bool> IsGood() {
    ASSIGN_OR_RETURN(uint64_t begin, Begin(0));
    bool is_good = begin == 0;
    for (uint64_t sample = 0; is_good && sample < header_.samples; ++sample) {
      ASSIGN_OR_RETURN(const uint64_t end, Begin(sample + 1));
      ASSIGN_OR_RETURN(is_good, HasGoodPieces(begin, end));
      begin = end;
    }
    return is_good && pieces_.is_at_end() && begins_.is_at_end() &&
           pieces_.crc() == header_.pieces_crc && begins_.crc() == header_.begins_crc;
  }

 private:
  absl::StatusOr<uint64_t> Begin(uint64_t sample) {
    if (header_.begins() == 0) return sample;
    return begins_.Next();
  }
  absl::StatusOr<bool> HasGoodPieces(uint64_t begin, uint64_t end) {
    if (end <= begin || end > header_.pieces) return false;
    int64_t tokens = 0;
    for (; begin < end; ++begin) {
      ASSIGN_OR_RETURN(const uint64_t word, pieces_.Next());
      const Stretch piece = StretchOf(word);
      tokens += piece.tokens;
      const int64_t last = piece.first + piece.tokens + (piece.goes_on ? 1 : 0);
      if (piece.tokens == 0 || tokens > bounds_.context || last > bounds_.tokens) return false;
    }
    return true;
  }

  const Header header_;
  const SampleIndex::Bounds bounds_;
  WordReader pieces_, begins_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const SampleIndex>> SampleIndex::Open(const std::string& folder,
                                                                     const std::string& name,
                                                                     const Bounds& bounds,
                                                                     const Source& source) {
  std::optional<Header> header;
  const auto is_good = [&](const KeptFile& file) {
    header = HeaderOf(file);
    if (!header) return false;
    const absl::StatusOr<bool> good = Inspection(file, *header, bounds).IsGood();
    return good.ok() && *good;
  };
  // Whatever fails reads or writes files; another folder may have room.
  const auto write = [&](const KeptFile& file, absl::Status* of_file) {
    return *of_file = Write(file, source);
  };
  ASSIGN_OR_RETURN(KeptFile file,
                   OpenOrWrite(folder, absl::StrCat(name, ".packs"), is_good, write));
  return std::shared_ptr<const SampleIndex>(new SampleIndex(std::move(file),
                                                            static_cast<int64_t>(header->samples),
                                                            static_cast<int64_t>(header->pieces)));
}

absl::StatusOr<std::vector<Stretch>> SampleIndex::Pieces(int64_t sample) const {
  const int file = file_.file.get();
  uint64_t range[2] = {static_cast<uint64_t>(sample), static_cast<uint64_t>(sample) + 1};
  if (samples_ < pieces_) {
    RETURN_IF_ERROR(
        ReadAt(file, file_.path, BeginsAt(pieces_) + sample * kWord, range, sizeof(range)));
  }
  if (range[0] > range[1] || range[1] > static_cast<uint64_t>(pieces_)) {
    return absl::DataLossError(absl::StrCat(file_.path, " changed while it was read"));
  }
  std::vector<uint64_t> words(range[1] - range[0]);
  RETURN_IF_ERROR(ReadAt(file, file_.path, BeginsAt(static_cast<int64_t>(range[0])), words.data(),
                         words.size() * sizeof(uint64_t)));
  std::vector<Stretch> pieces;
  for (const uint64_t word : words) pieces.push_back(StretchOf(word));
  return pieces;
}

}  // namespace thinwire
