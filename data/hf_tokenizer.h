// Tokenizers of Hugging Face's format (tokenizer_json.h): byte pairs over bytes, as GPT-2, Llama 3
// and Qwen have them, and over characters, as SentencePiece and with it Llama 2, Mistral and Gemma
// have them. Ids are those of the library `tokenizers` with add_special_tokens=False.
//
// Ids become the text again. Over bytes it is composed where the rules say so, and lacks bytes for
// which the vocabulary has no token (SmolLM2's lacks some that no text has). Over characters "▁"
// (U+2581) comes back as a space, and a first space may be lost.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "data/added_tokens.h"
#include "data/bonds.h"
#include "data/cuts.h"
#include "data/hf_files.h"
#include "data/known_words.h"
#include "data/merges.h"
#include "data/text_rules.h"
#include "data/tokenizer.h"

namespace thinwire {

// The tokenizer.
class HfTokenizer final : public Tokenizer {
 public:
  // Reads the files of a folder. Errors of ReadHfFiles.
  static absl::StatusOr<std::unique_ptr<HfTokenizer>> Load(const std::string& dir,
                                                           Specials specials);

  // `files` are as ReadHfFiles returns them. InvalidArgument names a merge that is repeated.
  static absl::StatusOr<std::unique_ptr<HfTokenizer>> Of(HfFiles files, Specials specials);

  int32_t vocabulary() const override { return static_cast<int32_t>(texts_.size()); }
  // Never fails.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  absl::StatusOr<std::vector<PassageIds>> EncodeEach(
      absl::Span<const std::vector<Passage>> texts) const override;
  std::optional<int32_t> begin_of_text() const override { return begin_of_text_; }
  std::optional<int32_t> end_of_text() const override {
    return ends_of_text_.empty() ? std::nullopt : std::make_optional(ends_of_text_.front());
  }
  std::vector<int32_t> ends_of_text() const override { return ends_of_text_; }
  bool may_be_cut() const override { return may_be_cut_; }
  // Over characters, returns a place that neither a merge nor an added token bridges.
  size_t LastCut(std::string_view text) const override;
  absl::StatusOr<std::vector<int32_t>> EncodeRest(std::string_view text) const override;
  const std::string& digest() const override { return digest_; }

 private:
  static constexpr int32_t kNoId = -1;

  // State of one call of Encode or EncodeEach.
  struct Encoding {
    std::vector<int32_t> ids;
    KnownWords known;
    std::deque<std::string>
        buffers;  // texts that words are views of, where they are the call's own
  };

  HfTokenizer(const TextRules& rules, Specials specials)
      : rules_(rules),
        specials_(specials),
        added_(specials),
        normalized_(specials),
        written_(specials) {}

  void AddByteTexts(const TokenizerJson& tokenizer);
  void AddCharacterTexts(const TokenizerJson& tokenizer);
  absl::Status AddMerges(const TokenizerJson& tokenizer);
  void AddAdded(const std::vector<AddedToken>& added);

  void Append(int32_t id, std::string* text) const override { *text += texts_[id]; }
  bool IsPrefixed(const std::string& text) const override;

  // Return a text as the normalizer or the pre-tokenizer leaves it: `text` itself, or in *buffer.
  std::string_view Normalized(std::string_view text, std::string* buffer) const;
  std::string_view Prepared(std::string_view text, bool is_first, std::string* buffer) const;

  // Append the ids of what their names say to the encoding.
  PassageIds EncodePassages(absl::Span<const Passage> passages, Encoding* to) const;
  // Returns the numbers, among the ids of a part, of the first ones behind places in it.
  std::vector<size_t> FirstsIn(const AddedTokens::Part& part, bool is_first,
                               absl::Span<const size_t> places,
                               absl::Span<const int32_t> ids) const;
  void EncodePart(const AddedTokens::Part& part, bool is_first, Encoding* to) const;
  void EncodeNormalized(std::string_view text, bool is_first, Encoding* to) const;
  void EncodeWords(std::string_view text, Encoding* to) const;
  void EncodeWord(std::string_view word, std::vector<int32_t>* ids) const;
  size_t PushCharacter(std::string_view word, size_t at, std::vector<int32_t>* ids) const;
  void PushBytes(std::string_view word, std::vector<int32_t>* ids) const;

  const TextRules rules_;
  bool may_be_cut_ = false;
  Cuts cuts_;  // Units::kCharacters
  const Specials specials_;
  // The second are looked for behind the normalizer. The third are the first, and those of the
  // second that are tokens only where a format writes them, as it spells them.
  AddedTokens added_, normalized_, written_;
  std::vector<std::string> texts_;            // what each id stands for
  std::array<int32_t, 256> id_of_byte_ = {};  // kNoId: none
  int32_t unknown_ = kNoId;                   // of a byte without a token; kNoId: it is lost
  bool fuses_unknown_ = false;                // whether several in a row are one
  absl::flat_hash_map<uint32_t, int32_t> id_of_character_;  // Units::kCharacters
  // Ids of words that become a token without merges; views of texts_.
  absl::flat_hash_map<std::string_view, int32_t> whole_words_;
  Merges merges_;
  std::optional<Bonds> bonds_;  // Units::kCharacters; absent: any place may be bridged
  std::optional<int32_t> begin_of_text_;
  std::vector<int32_t> ends_of_text_;
  std::string digest_;
};

}  // namespace thinwire
