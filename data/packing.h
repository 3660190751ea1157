// Division of documents among samples of equally many tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/enum_names.h"

namespace thinwire {

// Ways to fill a sample.
enum class Packing : uint8_t {
  kNone,     // with one document, or a part of one
  kStream,   // with what comes next of all documents one behind another
  kBestFit,  // with whole documents, as many as fit, which do not see one another
};

// Returns the names "none", "stream" and "best_fit".
NameTable<Packing> TableOf(Packing);

// Treatment of documents with more tokens than a sample.
enum class TooLong : uint8_t {
  kSplit,     // parts of as many tokens as a sample has, and the rest
  kTruncate,  // their first tokens stay
  kDrop,      // they are left out
};

// Returns the names "split", "truncate" and "drop".
NameTable<TooLong> TableOf(TooLong);

// A stretch of tokens of one document; under kStream of all.
struct Stretch {
  uint64_t first : 42;
  uint64_t tokens : 21;
  uint64_t goes_on : 1;  // whether the token behind the last one is that one's label

  Stretch(int64_t first_token, int64_t count, bool is_continued)
      : first(static_cast<uint64_t>(first_token)),
        tokens(static_cast<uint64_t>(count)),
        goes_on(is_continued ? 1 : 0) {}

  friend bool operator==(const Stretch& a, const Stretch& b) {
    return a.first == b.first && a.tokens == b.tokens && a.goes_on == b.goes_on;
  }
};

// Divides documents of these lengths, which lie one behind another from token `first` on, into
// pieces of at most `context` tokens (2^20 or fewer), in their order. A piece of one token without
// a label behind it is left out.
std::vector<Stretch> Divided(absl::Span<const uint32_t> lengths, int64_t first, int64_t context,
                             Packing packing, TooLong too_long);

// Puts pieces of at most `context` tokens into as few samples as best-fit decreasing finds: the
// longest first, each into the fullest sample that has room, the last made one of equals. Returns
// the number of each piece's sample; samples are numbered in the order of their first pieces.
std::vector<uint32_t> BestFit(absl::Span<const Stretch> pieces, int64_t context);

}  // namespace thinwire
