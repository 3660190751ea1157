// GPT-2's byte-level byte pair encoding (Sennrich et al., 2016; Radford et al., 2019): a text is
// divided into words (words.h), a word into its bytes, and of the neighbouring tokens of a word the
// pair that the list of merges has first becomes one, the leftmost of equals, until no pair stands
// in the list. Any bytes have tokens, and decode to the same bytes.
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
#include "data/tokenizer.h"

namespace thinwire {

inline constexpr char kEndOfText[] = "<|endoftext|>";

// What a vocabulary is made of, as files have it.
struct BpeFiles {
  std::string vocabulary;  // JSON, {"token": id}
  std::string merges;
};

// The files of a folder: encoder.json and vocab.bpe (OpenAI's names), or vocab.json and merges.txt
// (Hugging Face's). NotFound names the folder and how to get the official ones; DataLoss, with
// `verify`, a file that is not an official one, with the size and SHA-256 met and wanted.
absl::StatusOr<BpeFiles> ReadBpeFiles(const std::string& dir, bool verify);

class Bpe final : public Tokenizer {
 public:
  // Errors of ReadBpeFiles and of Parse.
  static absl::StatusOr<std::unique_ptr<Bpe>> Load(const std::string& dir, bool verify,
                                                   EndOfText end_of_text);

  // `vocabulary`: JSON, {"token": id}; ids are 0 to n - 1. `merges`: lines "left right" in order of
  // rank, after an optional line "#version...". Tokens are spelled with a printable character for
  // each byte, as GPT-2 does. InvalidArgument names the token or the line: an id twice or out of
  // range, a byte without a token, a merge whose parts no line before has made, or whose product
  // has no id or is made twice.
  static absl::StatusOr<std::unique_ptr<Bpe>> Parse(std::string_view vocabulary,
                                                    std::string_view merges, EndOfText end_of_text);

  int32_t vocabulary() const override { return static_cast<int32_t>(bytes_.size()); }
  // Never fails.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids) const override;
  const std::string& digest() const override { return digest_; }

  std::optional<int32_t> end_of_text() const override { return end_of_text_; }

 private:
  struct Merge {
    int32_t rank, product;
  };
  struct Pair {
    int32_t left, right;
    friend bool operator==(const Pair& a, const Pair& b) {
      return a.left == b.left && a.right == b.right;
    }
    template <typename H>
    friend H AbslHashValue(H h, const Pair& pair) {
      return H::combine(std::move(h), pair.left, pair.right);
    }
  };

  using Ids = absl::flat_hash_map<std::string, int32_t>;  // of the tokens' bytes

  // Words that a text had before, and where in the ids of that text theirs stand.
  struct Place {
    size_t first, count;
  };
  using KnownWords = absl::flat_hash_map<std::string_view, Place>;

  Bpe() = default;
  absl::StatusOr<Ids> AddTokens(std::string_view vocabulary, EndOfText end_of_text);
  absl::Status AddMerges(std::string_view merges, const Ids& ids);
  void EncodeWord(std::string_view word, std::vector<int32_t>* ids) const;
  void EncodeText(std::string_view text, KnownWords* known, std::vector<int32_t>* ids) const;
  const Merge* FindMerge(int32_t left, int32_t right) const;

  std::vector<std::string> bytes_;  // of each id
  int32_t id_of_byte_[256] = {};
  absl::flat_hash_map<Pair, Merge> merges_;
  std::optional<int32_t> end_of_text_;
  std::string digest_;
};

}  // namespace thinwire
