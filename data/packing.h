// Division of documents among samples of equally many tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
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
  int64_t first = 0, tokens = 0;
  bool goes_on = false;  // whether the token behind the last one is that one's label

  friend bool operator==(const Stretch& a, const Stretch& b) {
    return a.first == b.first && a.tokens == b.tokens && a.goes_on == b.goes_on;
  }
};

// Returns a stretch as 64 bits, of which the lowest is `goes_on`, the next 21 are `tokens` and the
// others `first`, and the stretch of such a word. Words are ascending as first tokens are.
uint64_t WordOf(const Stretch& stretch);
Stretch StretchOf(uint64_t word);

// How documents are divided.
struct DocumentDivision {
  int64_t context = 0;  // most tokens of a piece: 2^20 or fewer
  Packing packing = Packing::kNone;
  TooLong too_long = TooLong::kSplit;
};

// Divides documents, which lie one behind another, into pieces, in their order. A piece of one
// token without a label behind it is left out.
class Divider {
 public:
  // Takes pieces in their order.
  using Take = std::function<absl::Status(const Stretch&)>;

  // The first document begins with token number `first`.
  Divider(const DocumentDivision& division, int64_t first, Take take)
      : division_(division), next_(first), take_(std::move(take)) {}

  // Divides the next document, which has so many tokens. Errors of `take`.
  absl::Status Add(int64_t tokens);
  // Divides what is left. Errors of `take`.
  absl::Status End();

 private:
  absl::Status Split(int64_t first, int64_t tokens) const;

  const DocumentDivision division_;
  int64_t next_;           // first token of the document that comes next
  int64_t of_stream_ = 0;  // kStream: tokens before it
  const Take take_;
};

// Puts pieces into as few samples as best-fit decreasing finds: each into the fullest sample that
// has room, the last made one of equals. Takes memory for different lengths of pieces; many samples
// with as much room take no more than one.
class BestFit {
 public:
  // A sample has room for `context` tokens.
  explicit BestFit(int64_t context);

  // Returns the number of the next piece's sample, which counts from 0. `tokens` are 1 to
  // `context`, and no more than those of the piece before.
  int64_t Place(int64_t tokens);

 private:
  // Samples `first`, `first` + `step` and so on.
  struct Row {
    int64_t first, count, step;

    int64_t last() const { return first + (count - 1) * step; }
  };

  void Add(size_t room, int64_t sample);
  // Takes out the last sample of those with as much room.
  int64_t TakeFrom(size_t room);

  int64_t samples_ = 0;
  std::vector<std::vector<Row>> rows_;  // by the room that they have left
  std::set<size_t> rooms_;              // those that a sample has
};

}  // namespace thinwire
