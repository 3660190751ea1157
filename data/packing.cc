#include "data/packing.h"

#include <algorithm>

#include "base/status.h"

namespace thinwire {
namespace {

constexpr Named<Packing> kPackingNames[] = {
    {Packing::kNone, "none"}, {Packing::kStream, "stream"}, {Packing::kBestFit, "best_fit"}};
constexpr Named<TooLong> kTooLongNames[] = {
    {TooLong::kSplit, "split"}, {TooLong::kTruncate, "truncate"}, {TooLong::kDrop, "drop"}};

constexpr int kTokenBits = 21, kFirstShift = kTokenBits + 1;

}  // namespace

NameTable<Packing> TableOf(Packing) { return {"packing", kPackingNames}; }
NameTable<TooLong> TableOf(TooLong) { return {"too_long", kTooLongNames}; }

uint64_t WordOf(const Stretch& stretch) {
  return static_cast<uint64_t>(stretch.first) << kFirstShift |
         static_cast<uint64_t>(stretch.tokens) << 1 | (stretch.goes_on ? 1 : 0);
}

Stretch StretchOf(uint64_t word) {
  constexpr uint64_t kMask = (uint64_t{1} << kTokenBits) - 1;
  return {static_cast<int64_t>(word >> kFirstShift), static_cast<int64_t>(word >> 1 & kMask),
          (word & 1) != 0};
}

absl::Status Divider::Split(int64_t first, int64_t tokens) const {
  const int64_t context = division_.context;
  for (; tokens > 1; first += context, tokens -= context) {
    RETURN_IF_ERROR(take_({first, std::min(tokens, context), tokens > context}));
  }
  return absl::OkStatus();
}

absl::Status Divider::Add(int64_t tokens) {
  const int64_t first = next_, context = division_.context;
  next_ += tokens;
  if (division_.packing == Packing::kStream) {
    of_stream_ += tokens;
    return absl::OkStatus();
  }
  if (tokens <= context || division_.too_long == TooLong::kSplit) return Split(first, tokens);
  const bool is_cut = division_.too_long == TooLong::kTruncate && context > 1;
  return is_cut ? take_({first, context, false}) : absl::OkStatus();
}

absl::Status Divider::End() { return Split(next_ - of_stream_, of_stream_); }

BestFit::BestFit(int64_t context) : rows_(static_cast<size_t>(context) + 1) {}

// A row whose last sample is `sample`'s neighbour gets it. Samples that pieces of one length have
// filled one after another come out the other way round.
void BestFit::Add(size_t room, int64_t sample) {
  std::vector<Row>& rows = rows_[room];
  if (rows.empty()) {
    rooms_.insert(room);
  } else {
    Row& row = rows.back();
    const int64_t step = sample - row.last();
    if (row.count == 1 ? step == 1 || step == -1 : step == row.step) {
      row.step = step;
      ++row.count;
      return;
    }
  }
  rows.push_back({sample, 1, 1});
}

int64_t BestFit::TakeFrom(size_t room) {
  std::vector<Row>& rows = rows_[room];
  const int64_t sample = rows.back().last();
  if (--rows.back().count == 0) rows.pop_back();
  if (rows.empty()) rooms_.erase(room);
  return sample;
}

int64_t BestFit::Place(int64_t tokens) {
  const auto size = static_cast<size_t>(tokens);
  const auto found = rooms_.lower_bound(size);
  const size_t room = found == rooms_.end() ? rows_.size() - 1 : *found;
  const int64_t sample = found == rooms_.end() ? samples_++ : TakeFrom(room);
  // Nothing more goes into what is full.
  if (room > size) Add(room - size, sample);
  return sample;
}

}  // namespace thinwire
