#include "data/large_text.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/sha256.h"
#include "base/status.h"
#include "data/characters.h"
#include "data/file_list.h"
#include "data/text.h"
#include "data/token_cache.h"
#include "data/token_file.h"
#include "data/unicode.h"
#include "data/unpacked_file.h"

namespace thinwire {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 24;
constexpr std::uintmax_t kInMemoryBytes = kPieceBytes;
constexpr size_t kMostBytes = size_t{1} << 30;  // of a piece that has no place to cut it

// Files that are one text, each a document.
struct TextFiles {
  std::vector<std::string> paths;
  std::string folder;  // of the first one
};

absl::StatusOr<TextFiles> TextFilesAt(const std::string& field, const std::string& path) {
  TextFiles files;
  ASSIGN_OR_RETURN(files.paths, FilesAt(field, path));
  files.folder = std::filesystem::path(files.paths[0]).parent_path().string();
  if (files.folder.empty()) files.folder = ".";
  return files;
}

// Takes pieces of a text in their order, and whether another file begins with one.
using PieceSink = std::function<absl::Status(std::string_view piece, bool is_first)>;

// Hands on a file's text without its byte order mark. Returns whether it had one. What the file is
// shows in its beginning: one HTML page is refused, several are a text.
absl::StatusOr<bool> ReadFileInPieces(const std::string& path, const PieceSink& take) {
  bool is_first = true, is_begun = false, had_mark = false;
  const auto hand_on = [&](std::string_view piece) {
    if (piece.empty()) return absl::OkStatus();
    return take(piece, std::exchange(is_first, false));
  };
  std::string beginning;
  const auto begin = [&]() -> absl::Status {
    is_begun = true;
    RETURN_IF_ERROR(CheckIsText(path, beginning));
    const size_t mark = ByteOrderMarkBytes(beginning);
    had_mark = mark > 0;
    return hand_on(std::string_view(beginning).substr(mark));
  };
  RETURN_IF_ERROR(ReadUnpacked(path, [&](std::string_view piece) {
    if (is_begun) return hand_on(piece);
    beginning += piece;
    return beginning.size() < kPieceBytes ? absl::OkStatus() : begin();
  }));
  if (!is_begun) RETURN_IF_ERROR(begin());
  return had_mark;
}

// Does the same for files one behind another, of which one may have had a mark.
absl::StatusOr<bool> ReadPieces(const TextFiles& files, const PieceSink& take) {
  bool had_mark = false;
  for (const std::string& path : files.paths) {
    ASSIGN_OR_RETURN(const bool is_marked, ReadFileInPieces(path, take));
    had_mark = had_mark || is_marked;
  }
  return had_mark;
}

// Counts characters of a text that comes in pieces.
class CharacterCount {
 public:
  void Add(std::string_view piece) {
    rest_ += piece;
    const size_t whole = WholeCharacters(rest_);
    Take(std::string_view(rest_).substr(0, whole));
    rest_.erase(0, whole);
  }
  void End() {
    Take(rest_);
    rest_.clear();
  }

  // Lets the count stop at `most` characters; bytes() is their length.
  void StopAt(int64_t most) { most_ = most; }
  int64_t characters() const { return characters_; }
  int64_t bytes() const { return bytes_; }

 private:
  void Take(std::string_view text) {
    size_t at = 0;
    for (; at < text.size() && characters_ < most_; ++characters_) {
      const bool is_ascii = static_cast<unsigned char>(text[at]) < 0x80;
      at += is_ascii ? 1 : CharacterAt(text, at).bytes;
    }
    bytes_ += static_cast<int64_t>(at);
  }

  std::string rest_;  // of a character whose end has not come
  int64_t characters_ = 0, bytes_ = 0, most_ = INT64_MAX;
};

// A part of a text, which has the bytes [first, last).
struct Part {
  TextFiles files;
  int64_t first = 0, last = INT64_MAX;
  std::vector<size_t> begins;  // places in it where another file begins
  std::string sha256;

  // Returns the part's bytes of a piece of the text that begins with byte number `at`.
  std::string_view Of(std::string_view piece, int64_t at) const {
    const int64_t end = at + static_cast<int64_t>(piece.size());
    const int64_t from = std::clamp(first, at, end), to = std::clamp(last, at, end);
    return piece.substr(static_cast<size_t>(from - at), static_cast<size_t>(to - from));
  }
};

struct Division {
  Part train, test;
  bool had_mark = false;
};

// Learns the digest of a text's parts, which are of the same files, and where files begin in them.
absl::StatusOr<bool> Learn(const std::vector<Part*>& parts) {
  int64_t at = 0;
  std::vector<Sha256Stream> digests(parts.size());
  ASSIGN_OR_RETURN(const bool had_mark,
                   ReadPieces(parts[0]->files, [&](std::string_view piece, bool is_first) {
                     for (size_t i = 0; i < parts.size(); ++i) {
                       Part& part = *parts[i];
                       digests[i].Add(part.Of(piece, at));
                       const bool is_within = part.first < at && at < part.last;
                       if (is_first && is_within)
                         part.begins.push_back(static_cast<size_t>(at - part.first));
                     }
                     at += static_cast<int64_t>(piece.size());
                     return absl::OkStatus();
                   }));
  for (size_t i = 0; i < parts.size(); ++i) parts[i]->sha256 = digests[i].Digest();
  if (at > 0) return had_mark;
  return absl::InvalidArgumentError(
      absl::StrCat(parts[0]->files.paths[0], " has 0 bytes, want one at least"));
}

// Returns the number of bytes of the first `share` of the characters, rounded down.
absl::StatusOr<int64_t> BytesOf(const TextFiles& files, double share) {
  int64_t most = INT64_MAX;
  for (const bool is_counted : {false, true}) {
    CharacterCount count;
    count.StopAt(most);
    RETURN_IF_ERROR(ReadPieces(files, [&count](std::string_view piece, bool) {
                      count.Add(piece);
                      return absl::OkStatus();
                    }).status());
    count.End();
    if (is_counted) return count.bytes();
    most = static_cast<int64_t>(static_cast<double>(count.characters()) * share);
  }
  return 0;
}

absl::StatusOr<Division> Divided(const TextOptions& text) {
  Division division;
  Part &train = division.train, &test = division.test;
  if (!text.train.empty()) {
    ASSIGN_OR_RETURN(train.files, TextFilesAt("data.train", text.train));
    ASSIGN_OR_RETURN(test.files, TextFilesAt("data.test", text.test));
    RETURN_IF_ERROR(Learn({&train}).status());
    RETURN_IF_ERROR(Learn({&test}).status());
    return division;
  }
  ASSIGN_OR_RETURN(train.files, TextFilesAt("data.file", text.file));
  test.files = train.files;
  ASSIGN_OR_RETURN(train.last, BytesOf(train.files, text.split));
  test.first = train.last;
  ASSIGN_OR_RETURN(division.had_mark, Learn({&train, &test}));
  return division;
}

// Encodes documents that come in pieces.
class PieceEncoder {
 public:
  PieceEncoder(const Tokenizer& tokenizer, const std::vector<size_t>& begins,
               const TokenFile::Sink& sink)
      : tokenizer_(tokenizer), begins_(begins), sink_(sink) {}

  absl::Status Add(std::string_view bytes) {
    while (next_ < begins_.size() && begins_[next_] < end_ + bytes.size()) {
      const size_t before = begins_[next_] - end_;
      RETURN_IF_ERROR(Take(bytes.substr(0, before)));
      bytes.remove_prefix(before);
      RETURN_IF_ERROR(EndDocument());
      ++next_;
    }
    return Take(bytes);
  }
  absl::Status End() { return Encode(waiting_.size()); }

 private:
  absl::Status Take(std::string_view bytes) {
    waiting_ += bytes;
    end_ += bytes.size();
    if (waiting_.size() < enough_) return absl::OkStatus();
    if (const size_t cut = tokenizer_.LastCut(waiting_); cut > 0) {
      enough_ = kPieceBytes;
      return Encode(cut);
    }
    enough_ = 2 * waiting_.size();
    if (waiting_.size() <= kMostBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", waiting_.size(), " bytes without a place where no token reaches over, such as a ",
        "line's end behind a letter or a number, want fewer than ", kMostBytes));
  }
  absl::Status EndDocument() {
    RETURN_IF_ERROR(Encode(waiting_.size()));
    is_begun_ = false;
    const std::optional<int32_t> end = tokenizer_.end_of_text();
    return end ? sink_({*end}) : absl::OkStatus();
  }
  absl::Status Encode(size_t bytes) {
    if (bytes == 0) return absl::OkStatus();
    const std::string_view text = std::string_view(waiting_).substr(0, bytes);
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                     is_begun_ ? tokenizer_.EncodeRest(text) : tokenizer_.Encode(text));
    is_begun_ = true;
    waiting_.erase(0, bytes);
    return sink_(ids);
  }

  const Tokenizer& tokenizer_;
  const std::vector<size_t>& begins_;
  const TokenFile::Sink& sink_;
  std::string waiting_;          // bytes up to number end_ that are not encoded
  size_t end_ = 0, next_ = 0;    // the latter: of the documents that begin later, the first
  size_t enough_ = kPieceBytes;  // bytes that are encoded as soon as they can be cut
  bool is_begun_ = false;        // whether some of the document are
};

absl::Status Changed(const TextFiles& files) {
  return absl::DataLossError(absl::StrCat(files.paths[0],
                                          files.paths.size() > 1 ? " or a file behind it" : "",
                                          " changed while it was read"));
}

// Returns the ids of a part. DataLoss if its bytes are others than Learn met, under whose digest
// the ids are kept.
absl::StatusOr<TokenRange> TokensOf(const Part& part, const Tokenizer& tokenizer) {
  const auto encode = [&](const TokenFile::Sink& sink) -> absl::Status {
    PieceEncoder encoder(tokenizer, part.begins, sink);
    Sha256Stream digest;
    int64_t at = 0;
    RETURN_IF_ERROR(ReadPieces(part.files, [&](std::string_view piece, bool) {
                      const std::string_view own = part.Of(piece, at);
                      at += static_cast<int64_t>(piece.size());
                      digest.Add(own);
                      return encoder.Add(own);
                    }).status());
    RETURN_IF_ERROR(encoder.End());
    return digest.Digest() == part.sha256 ? absl::OkStatus() : Changed(part.files);
  };
  const std::string name = TokenCacheName(part.sha256, tokenizer, part.begins);
  ASSIGN_OR_RETURN(auto file,
                   TokenFile::Open(part.files.folder, name, tokenizer.vocabulary(), encode));
  return TokenRange(std::move(file));
}

struct LargeText {
  TextTokens tokens;
  bool had_mark = false;

  CorpusSize size() const {
    CorpusSize size;
    size.vocabulary = tokens.vocabulary;
    size.train_tokens = tokens.train.size();
    size.test_tokens = tokens.test.size();
    return size;
  }
};

absl::StatusOr<LargeText> ReadLargeText(const DataOptions& options, const Tokenizer& tokenizer) {
  const TextOptions& text = options.text;
  ASSIGN_OR_RETURN(const Division division, Divided(text));
  LargeText large;
  large.had_mark = division.had_mark;
  large.tokens.name = text.train.empty() ? text.file : text.train;
  large.tokens.vocabulary = tokenizer.vocabulary();
  if (text.objective == Objective::kMasked) {  // of word pieces: see CheckObjective
    large.tokens.special = static_cast<const WordPiece&>(tokenizer).special();
  }
  ASSIGN_OR_RETURN(large.tokens.train, TokensOf(division.train, tokenizer));
  ASSIGN_OR_RETURN(large.tokens.test, TokensOf(division.test, tokenizer));
  return large;
}

absl::StatusOr<std::uintmax_t> BytesAt(const std::string& field, const std::string& path) {
  std::uintmax_t bytes = 0;
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesAt(field, path));
  for (const std::string& file : files) {
    std::error_code error;  // whoever reads the file reports it
    const std::uintmax_t here = std::filesystem::file_size(file, error);
    if (!error) bytes += here;
  }
  return bytes;
}

// Returns the fields that say where the text is, and what they say.
std::vector<std::pair<std::string, std::string>> Places(const TextOptions& text) {
  if (text.train.empty()) return {{"data.file", text.file}};
  return {{"data.train", text.train}, {"data.test", text.test}};
}

absl::StatusOr<std::unique_ptr<Tokenizer>> CharactersOf(const TextOptions& text) {
  Characters::Finder finder;
  const auto find = [&finder](std::string_view piece, bool) { return finder.Add(piece); };
  const std::string name = text.train.empty() ? text.file : text.train;
  for (const auto& [field, path] : Places(text)) {
    ASSIGN_OR_RETURN(const TextFiles files, TextFilesAt(field, path));
    RETURN_IF_ERROR(Annotated(ReadPieces(files, find).status(), name));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> characters, Annotated(finder.End(), name));
  return characters;
}

// Returns the tokenizer of a text that is encoded in pieces; null for one that is read as a whole.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOfLarge(const DataOptions& options) {
  const TextOptions& text = options.text;
  std::uintmax_t bytes = 0;
  for (const auto& [field, path] : Places(text)) {
    ASSIGN_OR_RETURN(const std::uintmax_t here, BytesAt(field, path));
    bytes += here;
  }
  std::unique_ptr<Tokenizer> none;
  if (bytes <= kInMemoryBytes) return none;
  ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, text.tokens == TokenKind::kCharacters
                                                             ? CharactersOf(text)
                                                             : TokenizerOf(CorpusText(), options));
  return tokenizer->may_be_cut() ? std::move(tokenizer) : std::move(none);
}

}  // namespace

absl::StatusOr<CorpusSize> MeasureTextFile(const DataOptions& options) {
  ASSIGN_OR_RETURN(const auto tokenizer, TokenizerOfLarge(options));
  if (tokenizer != nullptr) {
    ASSIGN_OR_RETURN(const LargeText large, ReadLargeText(options, *tokenizer));
    return large.size();
  }
  ASSIGN_OR_RETURN(const CorpusText text, ReadTextFile(options));
  return SizeOf(text, options);
}

absl::StatusOr<DataSplits> LoadTextFile(const DataOptions& options) {
  ASSIGN_OR_RETURN(const auto tokenizer, TokenizerOfLarge(options));
  if (tokenizer != nullptr) {
    ASSIGN_OR_RETURN(LargeText large, ReadLargeText(options, *tokenizer));
    const absl::Status fits = CheckPlanned(large.tokens.name, large.size(), options);
    if (fits.ok()) return SplitsOf(std::move(large.tokens), options);
    if (!large.had_mark) return fits;  // else LoadText knows what older programs counted
  }
  ASSIGN_OR_RETURN(const CorpusText text, ReadTextFile(options));
  return LoadText(text, options);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOfTextFile(const DataOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, TokenizerOfLarge(options));
  if (tokenizer != nullptr) {
    ASSIGN_OR_RETURN(const LargeText large, ReadLargeText(options, *tokenizer));
    const absl::Status fits = CheckPlanned(large.tokens.name, large.size(), options);
    if (fits.ok()) return tokenizer;
    if (!large.had_mark) return fits;
  }
  ASSIGN_OR_RETURN(const CorpusText text, ReadTextFile(options));
  return PlannedTokenizer(text, options);
}

}  // namespace thinwire
