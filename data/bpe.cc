#include "data/bpe.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <queue>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/annotated.h"
#include "base/sha256.h"
#include "base/status.h"
#include "data/official.h"
#include "data/unicode.h"
#include "data/words.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

constexpr size_t kMaxVocabulary = 1 << 24;
// Most words that one call of Encode remembers.
constexpr size_t kMaxKnownWords = 1 << 20;

// Returns whether a byte is spelled by itself in GPT-2's files, as printable characters of Latin-1
// are. The other bytes, in order, are spelled U+0100, U+0101 and so on.
bool IsSpelledByItself(uint32_t byte) {
  return ('!' <= byte && byte <= '~') || (0xA1 <= byte && byte <= 0xAC) || byte >= 0xAE;
}

// Returns the byte that each character of the spelling stands for, by its code; -1: none.
std::vector<int> BytesOfSpelling() {
  std::vector<int> bytes(0x200, -1);
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 0x100; ++byte) {
    bytes[IsSpelledByItself(byte) ? byte : next++] = static_cast<int>(byte);
  }
  return bytes;
}

// Returns the bytes of a token in the files; nothing if a character stands for no byte.
std::optional<std::string> Unspelled(std::string_view spelled) {
  static const std::vector<int> byte_of = BytesOfSpelling();
  std::string bytes;
  for (size_t at = 0; at < spelled.size();) {
    const Character character = CharacterAt(spelled, at);
    if (character.code >= byte_of.size() || byte_of[character.code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte_of[character.code]));
    at += character.bytes;
  }
  return bytes;
}

absl::Status Bad(const std::string& problem) {
  return absl::InvalidArgumentError(absl::StrCat("vocabulary: ", problem));
}

// A token of a word during its merges. Tokens are a linked list; a merge unlinks the right token.
struct Symbol {
  int32_t id;
  int32_t previous, next;  // -1: none
  int32_t rank;            // rank of its pair with the next token; kNoRank: none
  int32_t product;         // token that the pair becomes
};
constexpr int32_t kNoRank = INT32_MAX;

// A pair to merge. The lowest rank comes first; of equals the leftmost.
struct Candidate {
  int32_t rank, left;
  friend bool operator>(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};
using Candidates = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<Candidate>>;

}  // namespace

absl::StatusOr<BpeFiles> ReadBpeFiles(const std::string& dir, bool verify) {
  const OfficialData& official = OfficialDataOf("gpt2-bpe");
  std::error_code ignored;  // reading reports a missing folder
  const bool hugging_face = std::filesystem::exists(dir + "/vocab.json", ignored) &&
                            !std::filesystem::exists(dir + "/encoder.json", ignored);
  const std::string vocabulary = dir + (hugging_face ? "/vocab.json" : "/encoder.json");
  const std::string merges = dir + (hugging_face ? "/merges.txt" : "/vocab.bpe");
  BpeFiles files;
  ASSIGN_OR_RETURN(files.vocabulary, ReadDataFile(vocabulary, official.name));
  ASSIGN_OR_RETURN(files.merges, ReadDataFile(merges, official.name));
  if (!verify) return files;
  RETURN_IF_ERROR(CheckOfficial(official.files[0], vocabulary, files.vocabulary));
  RETURN_IF_ERROR(CheckOfficial(official.files[1], merges, files.merges));
  return files;
}

absl::StatusOr<std::unique_ptr<Bpe>> Bpe::Load(const std::string& dir, bool verify,
                                               EndOfText end_of_text) {
  ASSIGN_OR_RETURN(const BpeFiles files, ReadBpeFiles(dir, verify));
  return Annotated(Parse(files.vocabulary, files.merges, end_of_text), dir);
}

absl::StatusOr<std::unique_ptr<Bpe>> Bpe::Parse(std::string_view vocabulary,
                                                std::string_view merges, EndOfText end_of_text) {
  std::unique_ptr<Bpe> bpe(new Bpe);
  ASSIGN_OR_RETURN(const Ids ids, bpe->AddTokens(vocabulary, end_of_text));
  RETURN_IF_ERROR(bpe->AddMerges(merges, ids));
  bpe->digest_ =
      Sha256(absl::StrCat(Sha256(vocabulary), Sha256(merges), bpe->end_of_text_ ? kEndOfText : ""));
  return bpe;
}

absl::StatusOr<Bpe::Ids> Bpe::AddTokens(std::string_view vocabulary, EndOfText end_of_text) {
  const auto json = nlohmann::json::parse(vocabulary, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.empty() || json.size() > kMaxVocabulary) {
    return Bad("want a JSON object of tokens and their ids");
  }
  Ids ids;
  bytes_.resize(json.size());
  std::vector<bool> is_given(json.size());
  for (const auto& [token, id] : json.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= json.size()) {
      return Bad(
          absl::StrCat("\"", token, "\" has id ", id.dump(), ", want 0 to ", json.size() - 1));
    }
    const auto to = id.get<size_t>();
    if (is_given[to]) return Bad(absl::StrCat("id ", to, " stands there twice"));
    is_given[to] = true;
    const bool is_end = token == kEndOfText;
    if (is_end && end_of_text == EndOfText::kToken) end_of_text_ = static_cast<int32_t>(to);
    const std::optional<std::string> bytes = is_end ? token : Unspelled(token);
    if (!bytes) return Bad(absl::StrCat("\"", token, "\" is not spelled by bytes"));
    bytes_[to] = *bytes;
    if (!is_end) ids.emplace(*bytes, static_cast<int32_t>(to));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(std::string(1, static_cast<char>(byte)));
    if (found == ids.end()) {
      return Bad(absl::StrCat("byte 0x", absl::Hex(byte, absl::kZeroPad2), " has no token"));
    }
    id_of_byte_[byte] = found->second;
  }
  return ids;
}

absl::Status Bpe::AddMerges(std::string_view merges, const Ids& ids) {
  std::vector<bool> is_made(bytes_.size());
  for (const int32_t id : id_of_byte_) is_made[id] = true;
  int line = 0;
  const std::vector<std::string> lines = absl::StrSplit(std::string(merges), '\n');
  for (const std::string& text : lines) {
    ++line;
    if (text.empty() || (line == 1 && absl::StartsWith(text, "#version"))) continue;
    const auto bad = [&](const std::string& problem) {
      return Bad(absl::StrCat("merges, line ", line, ", \"", text, "\": ", problem));
    };
    const std::vector<std::string> parts = absl::StrSplit(text, ' ');
    if (parts.size() != 2) return bad("want two tokens");
    int32_t pair[2];
    std::string product;
    for (int i = 0; i < 2; ++i) {
      const std::optional<std::string> bytes = Unspelled(parts[i]);
      const auto found = bytes ? ids.find(*bytes) : ids.end();
      if (found == ids.end() || !is_made[found->second]) {
        return bad(absl::StrCat("\"", parts[i], "\" is no byte and no line before makes it"));
      }
      pair[i] = found->second;
      product += *bytes;
    }
    const auto made = ids.find(product);
    if (made == ids.end()) return bad("the vocabulary has no id for what it makes");
    if (is_made[made->second]) return bad("a line before makes the same token");
    is_made[made->second] = true;
    merges_[{pair[0], pair[1]}] = {static_cast<int32_t>(merges_.size()), made->second};
  }
  return absl::OkStatus();
}

const Bpe::Merge* Bpe::FindMerge(int32_t left, int32_t right) const {
  const auto found = merges_.find({left, right});
  return found == merges_.end() ? nullptr : &found->second;
}

// Encodes one word. A heap gives the next pair to merge, so n bytes take O(n log n). A pair that
// has changed since it was pushed is recognised by its rank and skipped.
void Bpe::EncodeWord(std::string_view word, std::vector<int32_t>* ids) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  Candidates candidates;
  const auto pair_up = [&](int32_t left) {
    Symbol& symbol = symbols[left];
    const Merge* merge = symbol.next < 0 ? nullptr : FindMerge(symbol.id, symbols[symbol.next].id);
    symbol.rank = merge == nullptr ? kNoRank : merge->rank;
    if (merge == nullptr) return;
    symbol.product = merge->product;
    candidates.push({merge->rank, left});
  };
  const auto size = static_cast<int32_t>(word.size());
  for (int32_t i = 0; i < size; ++i) {
    symbols.push_back(
        {id_of_byte_[static_cast<uint8_t>(word[i])], i - 1, i + 1 < size ? i + 1 : -1, kNoRank, 0});
  }
  for (int32_t i = 0; i < size; ++i) pair_up(i);
  while (!candidates.empty()) {
    const auto [rank, left] = candidates.top();
    candidates.pop();
    Symbol& symbol = symbols[left];
    if (symbol.rank != rank) continue;  // one of its tokens has been merged since
    Symbol& unlinked = symbols[symbol.next];
    symbol.id = symbol.product;
    symbol.next = unlinked.next;
    unlinked.rank = kNoRank;
    if (symbol.next >= 0) symbols[symbol.next].previous = left;
    pair_up(left);
    if (symbol.previous >= 0) pair_up(symbol.previous);
  }
  for (int32_t i = size > 0 ? 0 : -1; i >= 0; i = symbols[i].next) ids->push_back(symbols[i].id);
}

// Encodes a text. The ids of a word that occurred before are copied from `ids`.
void Bpe::EncodeText(std::string_view text, KnownWords* known, std::vector<int32_t>* ids) const {
  for (size_t at = 0, end = 0; at < text.size(); at = end) {
    end = WordEnd(text, at);
    const std::string_view word = text.substr(at, end - at);
    const size_t first = ids->size();
    const auto found = known->find(word);
    if (found != known->end()) {
      ids->resize(first + found->second.count);
      std::copy_n(ids->begin() + found->second.first, found->second.count, ids->begin() + first);
      continue;
    }
    EncodeWord(word, ids);
    if (known->size() < kMaxKnownWords) known->emplace(word, Place{first, ids->size() - first});
  }
}

absl::StatusOr<std::vector<int32_t>> Bpe::Encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  KnownWords known;
  for (;;) {
    const size_t at = end_of_text_ ? text.find(kEndOfText) : std::string_view::npos;
    EncodeText(text.substr(0, at), &known, &ids);
    if (at == std::string_view::npos) return ids;
    ids.push_back(*end_of_text_);
    text.remove_prefix(at + std::string_view(kEndOfText).size());
  }
}

absl::StatusOr<std::string> Bpe::Decode(absl::Span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary()) {
      return absl::InvalidArgumentError(
          absl::StrCat("id ", id, ", want 0 to ", vocabulary() - 1, ", the vocabulary"));
    }
    text += bytes_[id];
  }
  return text;
}

}  // namespace thinwire
