// Pairs of neighbouring characters that merges may bring into one token. A text can be divided
// between two characters that are no such pair: what stands left and right of that place is merged
// as it would be together. So a text without rules for words is merged in small parts, equal ones
// once, and the ids are those of the text as one word.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_set.h"

namespace thinwire {

// The pairs. Immutable and thread-safe once it has all.
class Bonds {
 public:
  // Adds the pairs of a token that a merge makes.
  void Add(std::string_view token);

  // Returns the end of the part that begins at text[at], where at < text.size(). Bytes that are not
  // UTF-8 are parts of their own.
  size_t PartEnd(std::string_view text, size_t at) const;

  // Returns whether two code points are a pair.
  bool Has(uint32_t left, uint32_t right) const;

 private:
  static constexpr uint32_t kAsciiEnd = 0x80;

  std::bitset<kAsciiEnd * kAsciiEnd> ascii_;  // by kAsciiEnd * left + right
  absl::flat_hash_set<uint64_t> others_;      // left in the upper half
};

}  // namespace thinwire
