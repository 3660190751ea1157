// Merges of neighbouring tokens of a word, in the order of a list (Sennrich et al., 2016). The pair
// that comes first in the list becomes one token, the leftmost of equal pairs first, until no pair
// is in the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace thinwire {

// The list. Immutable and thread-safe once it has all merges.
class Merges {
 public:
  // Puts a merge of two tokens into `product` behind those that are there. Returns false, and
  // changes nothing, if the pair is there already.
  bool Add(int32_t left, int32_t right, int32_t product);
  void Reserve(size_t merges) { merges_.reserve(merges); }

  // Merges the tokens of a word, those of *ids from `first` on. Takes O(n log n) for n tokens.
  void Apply(size_t first, std::vector<int32_t>* ids) const;

 private:
  struct Merge {
    int32_t rank, product;
  };
  using Pair = std::pair<int32_t, int32_t>;

  absl::flat_hash_map<Pair, Merge> merges_;
};

}  // namespace thinwire
