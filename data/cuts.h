// Places at which a text may be divided that tokenizers over characters take as one word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "data/bonds.h"
#include "data/unicode.h"

namespace thinwire {

// Finds them: places that no merge bridges and no added token. Immutable and thread-safe once it
// has all added tokens.
class Cuts {
 public:
  // Adds the spelling of an added token, which has "▁" for spaces. `takes_spaces`: it is found
  // together with the white space in front of it or behind it.
  void AddToken(std::string_view spelling, bool takes_spaces);

  // Returns the last place, behind the first byte, between two characters that are no pair of
  // `bonds`, which have "▁" for spaces, nor of an added token; nor does such a token end there. 0
  // if there is none.
  size_t Last(std::string_view text, const Bonds& bonds) const;

 private:
  bool IsCut(const Character& left, const Character& right, const Bonds& bonds) const;

  Bonds spelled_;                       // pairs of added tokens
  absl::flat_hash_set<uint32_t> ends_;  // last characters of them
  bool takes_spaces_ = false;           // whether one does
};

}  // namespace thinwire
