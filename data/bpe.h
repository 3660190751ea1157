// GPT-2's byte-level byte pair encoding (Radford et al., 2019), from GPT-2's own files. A text is
// divided into words (words.h) and a word into its bytes, which are merged (merges.h). Any bytes
// can be encoded, and decode to the same bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/known_words.h"
#include "data/merges.h"
#include "data/tokenizer.h"

namespace thinwire {

inline constexpr char kEndOfText[] = "<|endoftext|>";

// Contents of a vocabulary's two files.
struct BpeFiles {
  std::string vocabulary;  // JSON, {"token": id}
  std::string merges;
};

// Reads the files of a folder: encoder.json and vocab.bpe (OpenAI's names), or vocab.json and
// merges.txt (Hugging Face's). NotFound names the folder and how to get the official files.
// DataLoss, with `verify`, names a file that is not official, with the size and SHA-256 met and
// wanted.
absl::StatusOr<BpeFiles> ReadBpeFiles(const std::string& dir, bool verify);

// The tokenizer.
class Bpe final : public Tokenizer {
 public:
  // Reads and parses the files of a folder. Errors of ReadBpeFiles and of Parse.
  static absl::StatusOr<std::unique_ptr<Bpe>> Load(const std::string& dir, bool verify,
                                                   EndOfText end_of_text);

  // `vocabulary` is JSON, {"token": id}, with the ids 0 to n - 1. `merges` has lines "left right"
  // in order of rank, after an optional line "#version...". Tokens are spelled with a printable
  // character for each byte, as in GPT-2. InvalidArgument names the token or the line:
  // - an id that is repeated or out of range, or a byte without a token;
  // - a merge of parts that no earlier line made, or one whose product has no id or is made twice.
  static absl::StatusOr<std::unique_ptr<Bpe>> Parse(std::string_view vocabulary,
                                                    std::string_view merges, EndOfText end_of_text);

  int32_t vocabulary() const override { return static_cast<int32_t>(bytes_.size()); }
  // Never fails.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  const std::string& digest() const override { return digest_; }

  std::optional<int32_t> end_of_text() const override { return end_of_text_; }
  bool may_be_cut() const override { return true; }

 private:
  using Ids = absl::flat_hash_map<std::string, int32_t>;  // id of a token, by its bytes

  Bpe() = default;
  absl::StatusOr<std::vector<int32_t>> EncodeNaming(
      std::string_view text, absl::Span<const ByteRange> named) const override;
  void Append(int32_t id, std::string* text) const override { *text += bytes_[id]; }
  absl::StatusOr<Ids> AddTokens(std::string_view vocabulary, EndOfText end_of_text);
  absl::Status AddMerges(std::string_view merges, const Ids& ids);
  void EncodeWord(std::string_view word, std::vector<int32_t>* ids) const;
  void EncodeText(std::string_view text, KnownWords* known, std::vector<int32_t>* ids) const;

  std::vector<std::string> bytes_;  // bytes of each id
  int32_t id_of_byte_[256] = {};
  Merges merges_;
  std::optional<int32_t> end_of_text_;
  std::string digest_;
};

}  // namespace thinwire
