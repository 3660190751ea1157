// Tokens that are found in a text as they are spelled, before anything is merged.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "data/tokenizer.h"
#include "data/tokenizer_json.h"

namespace thinwire {

// A set of them. Immutable and thread-safe once it has all tokens.
class AddedTokens {
 public:
  // With Specials::kText special tokens are found but stay text, as do others within them.
  explicit AddedTokens(Specials specials) : specials_(specials) {}

  // Adds a token that is looked for as `spelling`, which is not empty. Of equal spellings the first
  // counts.
  void Add(const AddedToken& token, std::string_view spelling);

  // A part of a text: an added token, or what is between two.
  struct Part {
    std::string_view text;
    int32_t id;  // kNoToken: text
  };
  static constexpr int32_t kNoToken = -1;

  // Returns the parts of a text, none of them empty text. Of tokens that overlap the leftmost
  // counts, of those that begin together the longest. Special tokens within one of `formats`, which
  // are in ascending order, count whatever Specials says. Takes O(n m) for the longest spelling m.
  std::vector<Part> Split(std::string_view text, absl::Span<const ByteRange> formats = {}) const;

 private:
  struct Token {
    int32_t id;
    bool takes_left, takes_right, stays_text;
  };
  struct Match {
    size_t begin, end;
    const Token* token;
  };

  int32_t Child(int32_t node, char byte) const;  // -1: none
  // Returns the next match from text[at] on; without a token if there is none.
  Match Find(std::string_view text, size_t at) const;

  const Specials specials_;
  std::vector<Token> tokens_;
  // A trie of the spellings: for each node the token whose spelling ends there (-1: none), and the
  // nodes behind it.
  std::vector<int32_t> ends_ = {-1};
  absl::flat_hash_map<std::pair<int32_t, char>, int32_t> children_;
  std::array<bool, 256> begins_ = {};  // whether a spelling begins with a byte
  bool finds_any_ = false;             // whether a token does not stay text
};

}  // namespace thinwire
