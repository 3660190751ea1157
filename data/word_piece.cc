#include "data/word_piece.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "data/bert_characters.h"
#include "data/unicode.h"

namespace thinwire {
namespace {

constexpr std::string_view kFurther = "##";
constexpr size_t kMaxVocabulary = 1 << 24;
// Most characters of a word; a longer one is [UNK].
constexpr int kMaxCharacters = 100;
// Most words that one call of Encode remembers.
constexpr size_t kMaxKnownWords = 1 << 20;

bool StartsWith(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

absl::Status Bad(const std::string& problem) {
  return absl::InvalidArgumentError(absl::StrCat("vocabulary: ", problem));
}

// Gathers a text's words character by character.
class Words {
 public:
  explicit Words(const std::function<void(std::string_view)>& visit) : visit_(visit) {}

  void End() {
    if (!word_.empty()) visit_(word_);
    word_.clear();
  }
  void Add(uint32_t code) {
    const bool is_alone = BertClassOf(code) == BertCharacter::kPunctuation;
    if (is_alone) End();
    word_ += Utf8(code);
    if (is_alone) End();
  }

 private:
  const std::function<void(std::string_view)>& visit_;
  std::string word_;
};

bool HasCharacters(std::string_view word, int more_than) {
  int characters = 0;
  for (const char byte : word) characters += (byte & 0xC0) != 0x80;
  return characters > more_than;
}

// Returns the place of the first special token at or behind `at`, and its number; nothing if there
// is none.
struct FoundToken {
  size_t at = 0;
  size_t number = 0;
};
std::optional<FoundToken> FindNamed(std::string_view text, size_t at) {
  const std::array<std::string_view, 5> names = SpecialTokenNames();
  for (at = text.find('[', at); at != text.npos; at = text.find('[', at + 1)) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (StartsWith(text.substr(at), names[i])) return FoundToken{at, i};
    }
  }
  return std::nullopt;
}

std::array<int32_t, 5> InOrder(const SpecialTokens& special) {
  return {special.pad, special.unknown, special.start, special.separator, special.mask};
}

}  // namespace

std::array<std::string_view, 5> SpecialTokenNames() {
  return {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
}

void ForEachWord(std::string_view text, bool lowercase,
                 const std::function<void(std::string_view word)>& visit) {
  Words words(visit);
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    at += character.bytes;
    if (character.code == kNoCode) continue;
    const BertCharacter kind = BertClassOf(character.code);
    if (kind == BertCharacter::kRemoved) continue;
    const bool is_apart = kind == BertCharacter::kSpace || kind == BertCharacter::kIdeograph;
    if (is_apart) words.End();
    if (kind == BertCharacter::kSpace) continue;
    if (lowercase) {
      for (const uint32_t code : WithoutCaseAndAccents(character.code)) {
        if (code != 0) words.Add(code);
      }
    } else {
      words.Add(character.code);
    }
    if (is_apart) words.End();
  }
  words.End();
}

absl::StatusOr<std::unique_ptr<WordPiece>> WordPiece::Load(const std::string& dir, bool lowercase) {
  const std::string path = absl::StrCat(dir, "/", kWordPieceFile);
  absl::StatusOr<std::string> content = ReadFile(path);
  if (absl::IsNotFound(content.status())) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path,
                     ", one token a line: take that of a published BERT, or make one with ",
                     "`thinwire data vocabulary`"));
  }
  RETURN_IF_ERROR(content.status());
  RETURN_IF_ERROR(CheckNoStandIn(path, *content));
  return Annotated(Parse(*content, lowercase), path);
}

absl::StatusOr<std::unique_ptr<WordPiece>> WordPiece::Parse(const std::string& vocabulary,
                                                            bool lowercase) {
  std::unique_ptr<WordPiece> word_piece(new WordPiece(lowercase));
  RETURN_IF_ERROR(word_piece->AddTokens(vocabulary));
  RETURN_IF_ERROR(word_piece->FindSpecial());
  word_piece->digest_ = Sha256(absl::StrCat(lowercase ? "lower " : "cased ", vocabulary));
  return word_piece;
}

absl::Status WordPiece::AddTokens(const std::string& vocabulary) {
  tokens_ = absl::StrSplit(absl::StripSuffix(vocabulary, "\n"), '\n');
  if (tokens_.size() > kMaxVocabulary) {
    return Bad(absl::StrCat(tokens_.size(), " lines, want at most ", kMaxVocabulary));
  }
  for (size_t i = 0; i < tokens_.size(); ++i) {
    std::string& token = tokens_[i];
    if (!token.empty() && token.back() == '\r') token.pop_back();
    if (token.empty()) return Bad(absl::StrCat("line ", i + 1, " is empty, want a token"));
    const bool is_further = StartsWith(token, kFurther);
    const std::string_view key = std::string_view(token).substr(is_further ? kFurther.size() : 0);
    const auto [at, is_new] =
        (is_further ? further_ : first_).emplace(key, static_cast<int32_t>(i));
    if (!is_new) {
      return Bad(absl::StrCat("line ", i + 1, ": \"", token, "\" stands on line ", at->second + 1,
                              ", too"));
    }
    longest_ = std::max(longest_, key.size());
  }
  return absl::OkStatus();
}

absl::Status WordPiece::FindSpecial() {
  std::array<int32_t, 5> ids;
  const std::array<std::string_view, 5> names = SpecialTokenNames();
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = first_.find(names[i]);
    if (found == first_.end()) return Bad(absl::StrCat("no line is ", std::string(names[i])));
    ids[i] = found->second;
  }
  special_ = {ids[0], ids[1], ids[2], ids[3], ids[4]};
  return absl::OkStatus();
}

std::vector<int32_t> WordPiece::PiecesOf(std::string_view word) const {
  std::vector<int32_t> ids;
  if (HasCharacters(word, kMaxCharacters)) return {special_.unknown};
  for (size_t at = 0; at < word.size();) {
    const Ids& tokens = at == 0 ? first_ : further_;
    size_t bytes = std::min(word.size() - at, longest_);
    auto found = tokens.end();
    for (; bytes > 0 && found == tokens.end(); --bytes) found = tokens.find(word.substr(at, bytes));
    if (found == tokens.end()) return {special_.unknown};
    ids.push_back(found->second);
    at += found->first.size();
  }
  return ids;
}

void WordPiece::EncodeText(std::string_view text, KnownWords* known,
                           std::vector<int32_t>* ids) const {
  ForEachWord(text, lowercase_, [&](std::string_view word) {
    if (known->size() >= kMaxKnownWords) known->clear();
    const auto [found, is_new] = known->try_emplace(std::string(word));
    if (is_new) found->second = PiecesOf(word);
    ids->insert(ids->end(), found->second.begin(), found->second.end());
  });
}

absl::StatusOr<std::vector<int32_t>> WordPiece::Encode(std::string_view text) const {
  return EncodeNaming(text, {ByteRange{0, text.size()}});
}

absl::StatusOr<std::vector<int32_t>> WordPiece::EncodeNaming(
    std::string_view text, absl::Span<const ByteRange> named) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  KnownWords known;
  size_t done = 0;
  for (const ByteRange& range : named) {
    const std::string_view until = text.substr(0, range.end);
    std::optional<FoundToken> found = FindNamed(until, range.begin);
    for (; found; found = FindNamed(until, done)) {
      EncodeText(text.substr(done, found->at - done), &known, &ids);
      ids.push_back(InOrder(special_)[found->number]);
      done = found->at + SpecialTokenNames()[found->number].size();
    }
  }
  EncodeText(text.substr(done), &known, &ids);
  return ids;
}

void WordPiece::Append(int32_t id, std::string* text) const {
  const std::string& token = tokens_[static_cast<size_t>(id)];
  if (StartsWith(token, kFurther)) {
    text->append(token, kFurther.size());
  } else {
    absl::StrAppend(text, text->empty() ? "" : " ", token);
  }
}

}  // namespace thinwire
