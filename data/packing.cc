#include "data/packing.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace thinwire {
namespace {

constexpr Named<Packing> kPackingNames[] = {
    {Packing::kNone, "none"}, {Packing::kStream, "stream"}, {Packing::kBestFit, "best_fit"}};
constexpr Named<TooLong> kTooLongNames[] = {
    {TooLong::kSplit, "split"}, {TooLong::kTruncate, "truncate"}, {TooLong::kDrop, "drop"}};

// Adds the parts of a stretch of tokens.
void Split(int64_t first, int64_t tokens, int64_t context, std::vector<Stretch>* pieces) {
  for (; tokens > 1; first += context, tokens -= context) {
    pieces->emplace_back(first, std::min(tokens, context), tokens > context);
  }
}

// Samples by the room that they have left.
class Rooms {
 public:
  explicit Rooms(int64_t context) : samples_(static_cast<size_t>(context) + 1) {}

  void Add(size_t room, uint32_t sample) {
    if (samples_[room].empty()) rooms_.insert(room);
    samples_[room].push_back(sample);
  }
  // Takes out the sample with the least room for `tokens`; false if there is none.
  bool Take(size_t tokens, size_t* room, uint32_t* sample) {
    const auto found = rooms_.lower_bound(tokens);
    if (found == rooms_.end()) return false;
    *room = *found;
    *sample = samples_[*room].back();
    samples_[*room].pop_back();
    if (samples_[*room].empty()) rooms_.erase(found);
    return true;
  }

 private:
  std::vector<std::vector<uint32_t>> samples_;  // by their room
  std::set<size_t> rooms_;                      // those that a sample has
};

// Numbers samples anew in the order of their first pieces.
void Renumber(uint32_t samples, std::vector<uint32_t>* sample_of) {
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  std::vector<uint32_t> numbers(samples, kNone);
  uint32_t next = 0;
  for (uint32_t& sample : *sample_of) {
    if (numbers[sample] == kNone) numbers[sample] = next++;
    sample = numbers[sample];
  }
}

}  // namespace

NameTable<Packing> TableOf(Packing) { return {"packing", kPackingNames}; }
NameTable<TooLong> TableOf(TooLong) { return {"too_long", kTooLongNames}; }

std::vector<Stretch> Divided(absl::Span<const uint32_t> lengths, int64_t first, int64_t context,
                             Packing packing, TooLong too_long) {
  std::vector<Stretch> pieces;
  if (packing == Packing::kStream) {
    Split(first, std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), context, &pieces);
    return pieces;
  }
  pieces.reserve(lengths.size());
  for (const uint32_t length : lengths) {
    if (length <= context || too_long == TooLong::kSplit) {
      Split(first, length, context, &pieces);
    } else if (too_long == TooLong::kTruncate && context > 1) {
      pieces.emplace_back(first, context, false);
    }
    first += length;
  }
  return pieces;
}

std::vector<uint32_t> BestFit(absl::Span<const Stretch> pieces, int64_t context) {
  std::vector<uint32_t> longest_first(pieces.size()), sample_of(pieces.size());
  std::iota(longest_first.begin(), longest_first.end(), 0);
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](uint32_t a, uint32_t b) { return pieces[a].tokens > pieces[b].tokens; });
  Rooms rooms(context);
  uint32_t samples = 0;
  for (const uint32_t piece : longest_first) {
    const auto tokens = static_cast<size_t>(pieces[piece].tokens);
    auto room = static_cast<size_t>(context);
    if (!rooms.Take(tokens, &room, &sample_of[piece])) sample_of[piece] = samples++;
    rooms.Add(room - tokens, sample_of[piece]);
  }
  Renumber(samples, &sample_of);
  return sample_of;
}

}  // namespace thinwire
