#include "data/text.h"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/digest.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "data/bpe.h"
#include "data/bytes.h"
#include "data/characters.h"
#include "data/file_list.h"
#include "data/held_out.h"
#include "data/hf_tokenizer.h"
#include "data/masked_text.h"
#include "data/token_cache.h"
#include "data/unicode.h"
#include "data/unpacked_file.h"
#include "data/vocabulary_folder.h"
#include "data/word_piece.h"

namespace thinwire {
namespace {

// Tokens are counted, and numbered within a word, with 31 bits.
constexpr uint64_t kMaxFileBytes = (uint64_t{1} << 31) - 1;

struct Tokens {
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<int32_t> train, test;

  CorpusSize size() const {
    return {tokenizer->vocabulary(), static_cast<int64_t>(train.size()),
            static_cast<int64_t>(test.size())};
  }
};

// A part of a text, and where its documents begin.
struct TextPart {
  const std::string& text;
  const std::vector<size_t>& begins;
};

absl::StatusOr<std::vector<int32_t>> IdsOf(const std::string& folder, const TextPart& part,
                                           const Tokenizer& tokenizer, TokenKind kind) {
  const bool takes_time = kind == TokenKind::kBpe || kind == TokenKind::kHf;
  return !takes_time || folder.empty() ? tokenizer.EncodeDocuments(part.text, part.begins)
                                       : CachedTokens(folder, tokenizer, part.text, part.begins);
}

absl::StatusOr<Tokens> TokensOf(const CorpusText& text, const DataOptions& options) {
  Tokens tokens;
  ASSIGN_OR_RETURN(tokens.tokenizer, TokenizerOf(text, options));
  const TokenKind kind = options.text.tokens;
  const TextPart train = {text.train, text.train_begins}, test = {text.test, text.test_begins};
  ASSIGN_OR_RETURN(tokens.train, IdsOf(text.folder, train, *tokens.tokenizer, kind));
  ASSIGN_OR_RETURN(tokens.test, IdsOf(text.folder, test, *tokens.tokenizer, kind));
  return tokens;
}

std::string Spelled(const CorpusSize& size) {
  return absl::StrCat(size.train_tokens, " and ", size.test_tokens, " tokens of a vocabulary of ",
                      size.vocabulary);
}

// Returns the end of the first `share` of the characters, rounded down.
size_t SplitAt(std::string_view text, double share) {
  int64_t characters = 0;
  for (size_t at = 0; at < text.size(); at += CharacterAt(text, at).bytes) ++characters;
  auto left = static_cast<int64_t>(static_cast<double>(characters) * share);
  size_t at = 0;
  for (; left > 0; --left) at += CharacterAt(text, at).bytes;
  return at;
}

void Divide(std::string whole, double share, CorpusText* text) {
  const size_t end = SplitAt(whole, share);
  text->test = whole.substr(end);
  whole.resize(end);
  text->train = std::move(whole);
}

// Returns the tokens of a text as it was planned. Older programs counted a byte order mark at the
// beginning as a character; a text that was planned so is read with it.
absl::StatusOr<Tokens> PlannedTokens(const CorpusText& text, const DataOptions& options) {
  ASSIGN_OR_RETURN(Tokens tokens, TokensOf(text, options));
  const CorpusSize& wanted = options.text.size;
  const absl::Status fits = CheckPlanned(text.name, tokens.size(), options);
  if (fits.ok()) return tokens;
  if (!text.had_mark) return fits;
  CorpusText marked = text;
  Divide(absl::StrCat(kByteOrderMark, text.train, text.test), options.text.split, &marked);
  ASSIGN_OR_RETURN(tokens, TokensOf(marked, options));
  if (tokens.size() == wanted) return tokens;
  return fits;
}

// Returns true for a corpus of HTML pages; a failed download leaves a single page.
bool IsMadeOfPages(std::string_view text) {
  constexpr std::string_view kEnd = "</html";
  const size_t first = text.find(kEnd);
  return IsHtml(text) && first != std::string_view::npos &&
         text.find(kEnd, first + 1) != std::string_view::npos;
}

// Files one behind another.
struct TextFiles {
  std::string text;
  std::vector<size_t> begins;  // places where another file begins
  bool had_mark = false;       // whether one began with a byte order mark
  std::string folder;          // folder of the first one
};

absl::StatusOr<std::string> ReadWhole(const std::string& path, size_t most) {
  std::string whole;
  RETURN_IF_ERROR(ReadUnpacked(path, [&](std::string_view piece) -> absl::Status {
    whole += piece;
    if (whole.size() <= most) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        path, " makes the text longer than ", kMaxFileBytes, " bytes, want at most that many"));
  }));
  RETURN_IF_ERROR(CheckIsText(path, whole));
  return whole;
}

absl::StatusOr<TextFiles> ReadFiles(const std::string& field, const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesAt(field, path));
  TextFiles files;
  files.folder = std::filesystem::path(paths[0]).parent_path().string();
  if (files.folder.empty()) files.folder = ".";
  for (const std::string& file : paths) {
    ASSIGN_OR_RETURN(std::string whole, ReadWhole(file, kMaxFileBytes - files.text.size()));
    const size_t mark = ByteOrderMarkBytes(whole);
    if (mark > 0) files.had_mark = true;
    whole.erase(0, mark);
    if (whole.empty()) continue;
    if (files.text.empty()) {
      files.text = std::move(whole);
    } else {
      files.begins.push_back(files.text.size());
      files.text += whole;
    }
  }
  if (!files.text.empty()) return files;
  return absl::InvalidArgumentError(absl::StrCat(path, " has 0 bytes, want one at least"));
}

// Makes the samples of one part of a text.
absl::StatusOr<std::unique_ptr<Dataset>> Split(const std::string& what, TokenRange part,
                                               const TextTokens& all, const TextOptions& text,
                                               int64_t windows, int64_t limit) {
  ASSIGN_OR_RETURN(const int64_t blocks, SamplesOf(what, part.size(), text));
  const int64_t samples = windows > 0 ? windows : blocks;
  if (limit > samples) {
    return absl::InvalidArgumentError(
        absl::StrCat("a limit of ", limit, " samples, but ", what, " holds ", samples));
  }
  ASSIGN_OR_RETURN(const bool has_labels, part.HasLabels());
  if (!has_labels) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has no token to learn, by its mask: want one, or data.loss_on: all"));
  }
  std::unique_ptr<Dataset> data;
  if (text.objective == Objective::kMasked) {
    data = std::make_unique<MaskedText>(
        std::move(part), MaskedText::Options{all.vocabulary, text.context, windows, limit,
                                             text.mask_rate, all.special});
  } else {
    data = std::make_unique<TextDataset>(std::move(part), all.vocabulary, text.context, windows,
                                         limit);
  }
  RETURN_IF_ERROR(data->status());
  return data;
}

}  // namespace

TextDataset::TextDataset(TokenRange tokens, int64_t vocabulary, int64_t context, int64_t windows,
                         int64_t limit)
    : tokens_(std::move(tokens)), vocabulary_(vocabulary), context_(context), windows_(windows) {
  assert(tokens_.size() > context_);
  const int64_t all = windows_ > 0 ? windows_ : (tokens_.size() - 1) / context_;
  assert(limit <= all);
  size_ = limit > 0 ? limit : all;
  Digest digest;
  error_.Update(tokens_.AddTo(&digest));
  for (const int64_t word : {vocabulary_, context_, windows_, size_}) {
    digest.AddWord(static_cast<uint64_t>(word));
  }
  digest_ = digest.value();
}

int64_t TextDataset::FirstOf(int64_t sample, const Augmentation& augmentation) const {
  assert(0 <= sample && sample < size_);
  const int64_t block = sample % ((tokens_.size() - 1) / context_);
  const int64_t first = augmentation.place >= 0 ? augmentation.place : block * context_;
  assert(first + context_ < tokens_.size());
  return first;
}

void TextDataset::Labels(int64_t sample, const Augmentation& augmentation,
                         absl::Span<int32_t> out) const {
  assert(static_cast<int64_t>(out.size()) == context_);
  error_.Update(tokens_.ReadLabels(FirstOf(sample, augmentation) + 1, out));
}

void TextDataset::LoadTokens(int64_t sample, const Augmentation& augmentation,
                             absl::Span<int32_t> out) const {
  assert(static_cast<int64_t>(out.size()) == context_);
  error_.Update(tokens_.Read(FirstOf(sample, augmentation), out));
}

std::string TrainingText(const std::string& name, const DataOptions& options) {
  if (options.held_out == 0) return absl::StrCat("the training text of ", name);
  return absl::StrCat("the training text of ", name, ", without the ", options.held_out,
                      " samples held out,");
}

std::string TestText(const std::string& name, const DataOptions& options) {
  return absl::StrCat(options.held_out > 0 ? "the text held out of " : "the test text of ", name);
}

absl::Status CheckObjective(const TextOptions& text) {
  if (text.objective == Objective::kNext) return absl::OkStatus();
  if (text.tokens != TokenKind::kWordPiece) {
    return absl::InvalidArgumentError(absl::StrCat("objective is masked with tokens ",
                                                   Name(text.tokens),
                                                   ", want word_piece, which has [MASK]"));
  }
  if (!(text.mask_rate > 0 && text.mask_rate < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("mask_rate is ", text.mask_rate, ", want more than 0 and less than 1"));
  }
  if (text.context >= 3) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("context is ", text.context, ", want at least 3 with objective masked"));
}

absl::StatusOr<int64_t> SamplesOf(const std::string& what, int64_t tokens,
                                  const TextOptions& text) {
  const int64_t of_sample = TokensOfText(text);
  if (tokens > of_sample) return (tokens - 1) / of_sample;
  return absl::InvalidArgumentError(
      absl::StrCat(what, " has ", tokens, " tokens, want at least ", of_sample + 1,
                   ", one more than data.context",
                   of_sample < text.context ? " without its special tokens" : ""));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(const CorpusText& text,
                                                       const DataOptions& options) {
  const TokenKind kind = options.text.tokens;
  if (kind == TokenKind::kBytes) return std::make_unique<Bytes>();
  if (kind != TokenKind::kCharacters) {
    ASSIGN_OR_RETURN(const std::string folder, VocabularyFolder(options.text));
    if (kind == TokenKind::kBpe) {
      return Bpe::Load(folder, options.verify, options.text.end_of_text);
    }
    if (kind == TokenKind::kWordPiece) return WordPiece::Load(folder, options.text.lowercase);
    return HfTokenizer::Load(folder, options.text.specials);
  }
  auto characters = Characters::Of(absl::StrCat(text.train, text.test));
  if (!characters.ok()) return Annotated(characters.status(), text.name);
  return characters;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> PlannedTokenizer(const CorpusText& text,
                                                            const DataOptions& options) {
  ASSIGN_OR_RETURN(Tokens tokens, PlannedTokens(text, options));
  return std::move(tokens.tokenizer);
}

absl::StatusOr<CorpusSize> SizeOf(const CorpusText& text, const DataOptions& options) {
  ASSIGN_OR_RETURN(const Tokens tokens, TokensOf(text, options));
  return tokens.size();
}

absl::Status CheckPlanned(const std::string& name, const CorpusSize& size,
                          const DataOptions& options) {
  const CorpusSize& wanted = options.text.size;
  if (wanted.vocabulary == 0 || size == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " has ", Spelled(size), " for training and test, want ", Spelled(wanted),
                   ", with which the experiment was resolved (data.corpus)"));
}

absl::StatusOr<DataSplits> SplitsOf(TextTokens tokens, const DataOptions& options) {
  if (options.held_out > 0) {
    const int64_t left = tokens.train.size() - HeldOutTokens(options);
    tokens.test = tokens.train.TakeFrom(std::max<int64_t>(0, left));
  }
  const TextOptions& text = options.text;
  DataSplits splits;
  ASSIGN_OR_RETURN(splits.train, Split(TrainingText(tokens.name, options), std::move(tokens.train),
                                       tokens, text, text.windows, options.limit));
  ASSIGN_OR_RETURN(splits.test, Split(TestText(tokens.name, options), std::move(tokens.test),
                                      tokens, text, /*windows=*/0, options.test_limit));
  return splits;
}

absl::StatusOr<DataSplits> LoadText(const CorpusText& text, const DataOptions& options) {
  ASSIGN_OR_RETURN(Tokens tokens, PlannedTokens(text, options));
  TextTokens made{text.name,
                  std::move(tokens.train),
                  std::move(tokens.test),
                  tokens.tokenizer->vocabulary(),
                  {}};
  if (options.text.objective == Objective::kMasked) {  // of word pieces: see CheckObjective
    made.special = static_cast<const WordPiece&>(*tokens.tokenizer).special();
  }
  return SplitsOf(std::move(made), options);
}

absl::Status CheckIsText(const std::string& path, std::string_view content) {
  if (!IsMadeOfPages(content)) RETURN_IF_ERROR(CheckNoStandIn(path, content));
  return CheckNoArchive(path, content);
}

absl::StatusOr<CorpusText> ReadTextFile(const DataOptions& options) {
  const TextOptions& asked = options.text;
  CorpusText text;
  text.name = asked.train.empty() ? asked.file : asked.train;
  if (!asked.train.empty()) {
    ASSIGN_OR_RETURN(TextFiles train, ReadFiles("data.train", asked.train));
    ASSIGN_OR_RETURN(TextFiles test, ReadFiles("data.test", asked.test));
    text.folder = train.folder;
    text.train = std::move(train.text);
    text.train_begins = std::move(train.begins);
    text.test = std::move(test.text);
    text.test_begins = std::move(test.begins);
    return text;
  }
  ASSIGN_OR_RETURN(TextFiles files, ReadFiles("data.file", asked.file));
  text.folder = files.folder;
  text.had_mark = files.had_mark && files.begins.empty();
  Divide(std::move(files.text), asked.split, &text);
  for (const size_t begin : files.begins) {
    const size_t end = text.train.size();
    if (begin < end) text.train_begins.push_back(begin);
    if (begin > end) text.test_begins.push_back(begin - end);
  }
  return text;
}

}  // namespace thinwire
