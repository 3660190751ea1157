#include "compress/cpu/kept.h"

#include <algorithm>

#include "compress/cpu/scratch.h"
#include "compress/cpu/segments.h"
#include "compress/cpu/select.h"

namespace thinwire {
namespace {

// Zeros are never sent, unless every scope has to send exactly K.
void LeaveOutZeros(const CodecSpec& spec, Selection* s) {
  if (spec.pad == Pad::kNone && s->threshold == 0) *s = {s->finite, 1, /*all_ties=*/true, 0};
}

// Of the entries that equal the threshold, those before the cut are kept.
void CollectScope(const float* x, size_t n, const Selection& s, uint32_t base, Kept* kept,
                  uint32_t* positions) {
  size_t cut = n;
  if (!s.all_ties) {
    cut = s.num_ties == 0 ? 0 : FindNthOfMagnitude(x, n, s.threshold, s.num_ties) + 1;
  }
  kept->count += CollectAtLeast(x, cut, s.threshold, base, kept->values + kept->count,
                                positions + kept->count);
  if (cut == n) return;
  kept->count +=
      CollectAtLeast(x + cut, n - cut, s.threshold + 1, base + static_cast<uint32_t>(cut),
                     kept->values + kept->count, positions + kept->count);
}

void KeepContiguous(const float* x, const Scopes& scopes, const CodecSpec& spec, Kept* kept,
                    uint32_t* positions) {
  const size_t n = scopes.elements;
  const size_t k = NumKept(spec, n);
  for (int64_t i = 0; i < scopes.count; ++i) {
    Selection s = SelectLargest(x + i * n, n, k);
    kept->finite = s.finite;
    if (!kept->finite) return;
    LeaveOutZeros(spec, &s);
    CollectScope(x + i * n, n, s, static_cast<uint32_t>(i * n), kept, positions);
  }
}

// A channel's threshold: ties are kept up to `last_tie_row` and dropped behind it.
struct ChannelCut {
  uint32_t threshold;
  int64_t last_tie_row;  // the last row, if nothing is dropped
  int64_t channel;
};

// Cuts channels [first, first + num) at once, so that each cache line is read only once.
bool CutChannels(const float* x, const Scopes& scopes, const CodecSpec& spec, int64_t first,
                 int64_t num, ChannelCut* cuts) {
  static thread_local Scratch<float> memory;
  const int64_t rows = scopes.elements;
  // One cache line beyond a page: columns whole pages apart would evict each other.
  const int64_t stride = (rows + 1023) / 1024 * 1024 + 16;
  float* columns = memory.Get(num * stride);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * scopes.count + first;
    __builtin_prefetch(row + 16 * scopes.count);
    for (int64_t c = 0; c < num; ++c) columns[c * stride + r] = row[c];
  }
  for (int64_t c = 0; c < num; ++c) {
    const float* column = columns + c * stride;
    Selection s = SelectLargest(column, rows, NumKept(spec, rows));
    if (!s.finite) return false;
    LeaveOutZeros(spec, &s);
    cuts[c] = {s.threshold, rows - 1, first + c};
    if (s.all_ties) continue;
    if (s.num_ties > 0) {
      cuts[c].last_tie_row = FindNthOfMagnitude(column, rows, s.threshold, s.num_ties);
    } else {
      ++cuts[c].threshold;
    }
  }
  return true;
}

// Collects rows in memory order with one threshold per channel.
class StridedCollector {
 public:
  StridedCollector(const float* x, const Scopes& scopes, const ChannelCut* cuts, Kept* kept,
                   uint32_t* positions)
      : x_(x), scopes_(scopes), period_(PeriodOf(scopes)), kept_(kept), positions_(positions) {
    static thread_local Scratch<uint32_t> memory;
    thresholds_ = memory.Get(period_);
    for (int64_t c = 0; c < scopes.count; ++c) SetThreshold(c, cuts[c].threshold);
  }
  void SetThreshold(int64_t channel, uint32_t threshold) {
    for (int64_t i = channel; i < period_; i += scopes_.count) thresholds_[i] = threshold;
  }
  void CollectThroughRow(int64_t row) {
    const int64_t end = (row + 1) * scopes_.count;
    for (; next_ < end; next_ += period_) {
      const size_t n = std::min(period_, end - next_);
      kept_->count += CollectAtLeastEach(x_ + next_, n, thresholds_, static_cast<uint32_t>(next_),
                                         kept_->values + kept_->count, positions_ + kept_->count);
    }
    next_ = end;
  }

 private:
  const float* x_;
  const Scopes& scopes_;
  int64_t period_;
  Kept* kept_;
  uint32_t* positions_;
  uint32_t* thresholds_;
  int64_t next_ = 0;  // always the first element of a row
};

void KeepStrided(const float* x, const Scopes& scopes, const CodecSpec& spec, Kept* kept,
                 uint32_t* positions) {
  static thread_local Scratch<ChannelCut> memory;
  constexpr int64_t kChannelsAtOnce = 16;  // a cache line
  ChannelCut* cuts = memory.Get(scopes.count);
  for (int64_t c = 0; c < scopes.count; c += kChannelsAtOnce) {
    const int64_t num = std::min(kChannelsAtOnce, scopes.count - c);
    kept->finite = CutChannels(x, scopes, spec, c, num, cuts + c);
    if (!kept->finite) return;
  }
  StridedCollector collector(x, scopes, cuts, kept, positions);
  std::sort(cuts, cuts + scopes.count, [](const ChannelCut& a, const ChannelCut& b) {
    return a.last_tie_row < b.last_tie_row;
  });
  for (int64_t c = 0; c < scopes.count; ++c) {
    collector.CollectThroughRow(cuts[c].last_tie_row);
    collector.SetThreshold(cuts[c].channel, cuts[c].threshold + 1);
  }
  collector.CollectThroughRow(scopes.elements - 1);
}

// This thread's arrays, for so many entries.
Kept MemoryFor(size_t most) {
  static thread_local Scratch<float> values;
  static thread_local Scratch<uint32_t> positions;
  Kept kept;
  kept.values = values.Get(most + kCollectSlack);
  kept.positions = positions.Get(most + kCollectSlack);
  return kept;
}

}  // namespace

Kept KeepLargest(const float* x, const Scopes& scopes, const CodecSpec& spec) {
  Kept kept = MemoryFor(NumKept(spec, scopes.elements) * scopes.count);
  if (scopes.strided) {
    KeepStrided(x, scopes, spec, &kept, kept.positions);
  } else {
    KeepContiguous(x, scopes, spec, &kept, kept.positions);
  }
  return kept;
}

Kept KeepAtLeast(const float* x, size_t n, uint32_t least) {
  Kept kept = MemoryFor(n);
  kept.count = CollectAtLeast(x, n, least, 0, kept.values, kept.positions);
  return kept;
}

}  // namespace thinwire
