// BERT's tokenizer (Devlin et al., 2019): words in lower case without accents, and WordPiece
// (Schuster and Nakajima, 2012), which cuts a word into the longest tokens that the vocabulary has,
// from left to right. Ids are those of Hugging Face's BertTokenizer. Spaces are lost.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/tokenizer.h"

namespace thinwire {

inline constexpr char kWordPieceFile[] = "vocab.txt";

// Ids of the tokens that are no part of a text.
struct SpecialTokens {
  int32_t pad = 0;        // [PAD] fills up a sample
  int32_t unknown = 0;    // [UNK], a word that the vocabulary cannot spell
  int32_t start = 0;      // [CLS], before a sample's texts
  int32_t separator = 0;  // [SEP], behind each text
  int32_t mask = 0;       // [MASK], in the place of a hidden token

  bool has(int32_t id) const {
    return id == pad || id == unknown || id == start || id == separator || id == mask;
  }
};

// Returns their names, in this order.
std::array<std::string_view, 5> SpecialTokenNames();

// Calls `visit` with each word of a text: what is between spaces, punctuation marks and ideographs,
// and each of these. Bytes that are no UTF-8 are left out. With `lowercase` words have neither case
// nor accents.
void ForEachWord(std::string_view text, bool lowercase,
                 const std::function<void(std::string_view word)>& visit);

// The tokenizer.
class WordPiece final : public Tokenizer {
 public:
  // Reads vocab.txt in a folder. NotFound names the missing file; errors of Parse name it, too.
  static absl::StatusOr<std::unique_ptr<WordPiece>> Load(const std::string& dir, bool lowercase);

  // `vocabulary` has one token in a line; the first has id 0. A token that goes on with a word
  // begins with "##". InvalidArgument names a line that is empty or stands there twice, or the
  // special token that is missing.
  static absl::StatusOr<std::unique_ptr<WordPiece>> Parse(const std::string& vocabulary,
                                                          bool lowercase);

  int32_t vocabulary() const override { return static_cast<int32_t>(tokens_.size()); }
  // Returns the ids of a text, without [CLS] and [SEP]. The names of special tokens in a text, as
  // "[MASK]", are these tokens. Never fails.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  bool may_be_cut() const override { return true; }
  const std::string& digest() const override { return digest_; }

  const SpecialTokens& special() const { return special_; }
  // Returns a token as vocab.txt spells it; `id` must be in the vocabulary.
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }

 private:
  using Ids = absl::flat_hash_map<std::string_view, int32_t>;
  using KnownWords = absl::flat_hash_map<std::string, std::vector<int32_t>>;

  explicit WordPiece(bool lowercase) : lowercase_(lowercase) {}
  absl::StatusOr<std::vector<int32_t>> EncodeNaming(
      std::string_view text, absl::Span<const ByteRange> named) const override;
  // Puts spaces between words.
  void Append(int32_t id, std::string* text) const override;
  absl::Status AddTokens(const std::string& vocabulary);
  absl::Status FindSpecial();
  std::vector<int32_t> PiecesOf(std::string_view word) const;
  void EncodeText(std::string_view text, KnownWords* known, std::vector<int32_t>* ids) const;

  const bool lowercase_;
  std::vector<std::string> tokens_;  // by id
  Ids first_, further_;  // tokens that begin a word; those that go on with one, without "##"
  size_t longest_ = 0;   // bytes of a key of these
  SpecialTokens special_;
  std::string digest_;
};

}  // namespace thinwire
