// Words of a text whose ids are known, as they occurred before. Most words of a text do, and
// copying ids is faster than finding them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace thinwire {

// The words of one text and their places among its ids.
class KnownWords {
 public:
  // Appends the ids of `word` to *ids: those of an equal word before, or what encode(word, ids)
  // appends. `ids` must be the same in each call, and bytes of words must stay in place.
  template <typename Encode>
  void Append(std::string_view word, const Encode& encode, std::vector<int32_t>* ids) {
    const size_t first = ids->size();
    const auto found = places_.find(word);
    if (found != places_.end()) {
      ids->resize(first + found->second.count);
      std::copy_n(ids->begin() + static_cast<ptrdiff_t>(found->second.first), found->second.count,
                  ids->begin() + static_cast<ptrdiff_t>(first));
      return;
    }
    encode(word, ids);
    if (places_.size() < kMostWords) places_.emplace(word, Place{first, ids->size() - first});
  }

 private:
  static constexpr size_t kMostWords = 1 << 20;

  struct Place {
    size_t first, count;
  };

  absl::flat_hash_map<std::string_view, Place> places_;
};

}  // namespace thinwire
