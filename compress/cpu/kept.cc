#include "compress/cpu/kept.h"

#include <algorithm>
#include <cstring>

#include "compress/cpu/parallel.h"
#include "compress/cpu/segments.h"
#include "compress/cpu/select.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Changes a selection so that no zeros are sent, unless every scope has to send exactly K.
void LeaveOutZeros(const CodecSpec& spec, Selection* s) {
  if (spec.pad == Pad::kNone && s->threshold == 0) *s = {s->finite, 1, /*all_ties=*/true, 0};
}

// Entries of one part of the tensor, from `start` on in the arrays of Kept.
struct PartEntries {
  size_t start = 0;
  size_t count = 0;
  bool finite = true;
};

// Appends the entries of the parts, each of which starts at its final place or behind it.
void Join(const PartEntries* parts, int num_parts, Kept* kept) {
  for (int i = 0; i < num_parts; ++i) {
    const PartEntries& part = parts[i];
    kept->finite &= part.finite;
    if (part.start != kept->count) {
      std::memmove(kept->values + kept->count, kept->values + part.start, 4 * part.count);
      std::memmove(kept->positions + kept->count, kept->positions + part.start, 4 * part.count);
    }
    kept->count += part.count;
  }
}

// Cut of a scope: before element `ties_end` magnitudes of at least `threshold` are kept, from there
// on only larger ones.
struct ScopeCut {
  uint32_t threshold;
  size_t ties_end;
};

ScopeCut CutOf(const float* x, size_t n, const Selection& s, int threads) {
  if (s.all_ties) return {s.threshold, n};
  if (s.num_ties == 0) return {s.threshold, 0};
  return {s.threshold, FindNthOfMagnitude(x, n, s.threshold, s.num_ties, threads) + 1};
}

// Appends the entries of elements [begin, end) of the scope x, whose first position is `base`.
void Collect(const float* x, size_t begin, size_t end, const ScopeCut& cut, uint32_t base,
             const Kept& memory, PartEntries* found) {
  const size_t middle = std::clamp(cut.ties_end, begin, end);
  float* values = memory.values + found->start;
  uint32_t* positions = memory.positions + found->start;
  found->count +=
      CollectAtLeast(x + begin, middle - begin, cut.threshold, base + static_cast<uint32_t>(begin),
                     values + found->count, positions + found->count);
  found->count += CollectAtLeast(x + middle, end - middle, cut.threshold + 1,
                                 base + static_cast<uint32_t>(middle), values + found->count,
                                 positions + found->count);
}

// Appends the entries of a whole scope x[0, n), found by several threads. Each writes to memory of
// its own, as long as its part.
void CollectByParts(const float* x, size_t n, const ScopeCut& cut, uint32_t base, int threads,
                    Kept* kept) {
  const Parts parts(n, threads);
  PartEntries found[Parts::kMost];
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    found[part].start = kept->count + begin + part * kCollectSlack;
    Collect(x, begin, end, cut, base, *kept, &found[part]);
  });
  Join(found, parts.count(), kept);
}

// Keeps the K largest of each scope in x[begin, end). The last one may be short.
void KeepWholeScopes(const float* x, int64_t begin, int64_t end, const Scopes& scopes,
                     const CodecSpec& spec, const Kept& memory, PartEntries* found) {
  for (int64_t i = begin; i < end; i += scopes.elements) {
    const size_t n = std::min(scopes.elements, end - i);
    Selection s = SelectLargest(x + i, n, NumKept(spec, n), /*threads=*/1);
    found->finite = s.finite;
    if (!found->finite) return;
    LeaveOutZeros(spec, &s);
    const ScopeCut cut = CutOf(x + i, n, s, /*threads=*/1);
    Collect(x + i, 0, n, cut, static_cast<uint32_t>(i), memory, found);
  }
}

// Keeps the K largest of one scope after the other, each with all threads.
void KeepLargeScopes(const float* x, const Scopes& scopes, const CodecSpec& spec, int threads,
                     Kept* kept) {
  for (int64_t i = 0; i < scopes.total; i += scopes.elements) {
    const size_t n = std::min(scopes.elements, scopes.total - i);
    Selection s = SelectLargest(x + i, n, NumKept(spec, n), threads);
    kept->finite = s.finite;
    if (!kept->finite) return;
    LeaveOutZeros(spec, &s);
    const ScopeCut cut = CutOf(x + i, n, s, threads);
    CollectByParts(x + i, n, cut, static_cast<uint32_t>(i), threads, kept);
  }
}

void KeepContiguous(const float* x, const Scopes& scopes, const CodecSpec& spec, int threads,
                    Kept* kept) {
  if (SplitsScopes(scopes, threads)) return KeepLargeScopes(x, scopes, spec, threads, kept);
  const Parts parts(scopes.total, threads, scopes.elements);
  PartEntries found[Parts::kMost];
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    found[part].start =
        begin / scopes.elements * NumKept(spec, scopes.elements) + part * kCollectSlack;
    KeepWholeScopes(x, begin, end, scopes, spec, *kept, &found[part]);
  });
  Join(found, parts.count(), kept);
}

// Cut of a channel, whose elements are its rows.
struct ChannelCut : ScopeCut {
  int64_t channel;
};

// Finds the cuts of channels [first, first + num) at once, so that each cache line is read only
// once: copies them as columns. Returns false if a value is not finite.
bool CutChannels(const float* x, const Scopes& scopes, const CodecSpec& spec, int64_t first,
                 int64_t num, ChannelCut* cuts) {
  static thread_local Scratch<float> memory;
  const int64_t rows = scopes.elements;
  // Columns lie one cache line more than whole pages apart; otherwise they would evict each other.
  const int64_t stride = (rows + 1023) / 1024 * 1024 + 16;
  float* columns = memory.Get(num * stride);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * scopes.count + first;
    __builtin_prefetch(row + 16 * scopes.count);
    for (int64_t c = 0; c < num; ++c) columns[c * stride + r] = row[c];
  }
  for (int64_t c = 0; c < num; ++c) {
    const float* column = columns + c * stride;
    Selection s = SelectLargest(column, rows, NumKept(spec, rows), /*threads=*/1);
    if (!s.finite) return false;
    LeaveOutZeros(spec, &s);
    cuts[c] = {CutOf(column, rows, s, /*threads=*/1), first + c};
  }
  return true;
}

// Finds the cuts of all channels. Returns false if a value is not finite.
bool CutAllChannels(const float* x, const Scopes& scopes, const CodecSpec& spec, int threads,
                    ChannelCut* cuts) {
  constexpr int64_t kChannelsAtOnce = 16;  // a cache line
  const int64_t rows = scopes.elements;
  bool finite[Parts::kMost];
  const Parts parts(scopes.total, threads, kChannelsAtOnce * rows);
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    finite[part] = true;
    for (int64_t c = begin / rows; c < end / rows && finite[part]; c += kChannelsAtOnce) {
      const int64_t num = std::min(kChannelsAtOnce, end / rows - c);
      finite[part] = CutChannels(x, scopes, spec, c, num, cuts + c);
    }
  });
  return std::all_of(finite, finite + parts.count(), [](bool is) { return is; });
}

// Collector of the entries of some rows, with one threshold per channel. A threshold rises by one
// behind the channel's last tie; cuts sorted by `ties_end` give the order of these changes.
class StridedCollector {
 public:
  // Starts with `cuts` of all channels, ascending in ties_end.
  StridedCollector(const float* x, const Scopes& scopes, const ChannelCut* cuts, const Kept& memory,
                   PartEntries* found)
      : x_(x), scopes_(scopes), cuts_(cuts), period_(PeriodOf(scopes)), found_(found) {
    static thread_local Scratch<uint32_t> thresholds;
    thresholds_ = thresholds.Get(period_);
    values_ = memory.values + found->start;
    positions_ = memory.positions + found->start;
  }
  // Collects from elements [begin, end), which are whole rows.
  void Collect(int64_t begin, int64_t end) {
    next_ = begin;
    for (int64_t c = 0; c < scopes_.count; ++c) {
      const int64_t ties_end = static_cast<int64_t>(cuts_[c].ties_end) * scopes_.count;
      SetThreshold(cuts_[c].channel, cuts_[c].threshold + (ties_end <= begin));
    }
    for (int64_t c = 0; c < scopes_.count; ++c) {
      const int64_t ties_end = static_cast<int64_t>(cuts_[c].ties_end) * scopes_.count;
      if (ties_end <= begin) continue;
      if (ties_end >= end) break;
      CollectUpTo(ties_end);
      SetThreshold(cuts_[c].channel, cuts_[c].threshold + 1);
    }
    CollectUpTo(end);
  }

 private:
  void SetThreshold(int64_t channel, uint32_t threshold) {
    for (int64_t i = channel; i < period_; i += scopes_.count) thresholds_[i] = threshold;
  }
  void CollectUpTo(int64_t end) {
    for (; next_ < end; next_ += period_) {
      const size_t n = std::min(period_, end - next_);
      found_->count += CollectAtLeastEach(x_ + next_, n, thresholds_, static_cast<uint32_t>(next_),
                                          values_ + found_->count, positions_ + found_->count);
    }
    next_ = end;
  }

  const float* x_;
  const Scopes& scopes_;
  const ChannelCut* cuts_;
  int64_t period_;
  PartEntries* found_;
  uint32_t* thresholds_;
  float* values_;
  uint32_t* positions_;
  int64_t next_ = 0;  // always the first element of a row
};

void KeepStrided(const float* x, const Scopes& scopes, const CodecSpec& spec, int threads,
                 Kept* kept) {
  static thread_local Scratch<ChannelCut> memory;
  ChannelCut* cuts = memory.Get(scopes.count);
  kept->finite = CutAllChannels(x, scopes, spec, threads, cuts);
  if (!kept->finite) return;
  std::sort(cuts, cuts + scopes.count,
            [](const ChannelCut& a, const ChannelCut& b) { return a.ties_end < b.ties_end; });
  const Parts parts(scopes.total, threads, scopes.count);
  PartEntries found[Parts::kMost];
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    found[part].start = begin + part * kCollectSlack;
    StridedCollector(x, scopes, cuts, *kept, &found[part]).Collect(begin, end);
  });
  Join(found, parts.count(), kept);
}

// Returns this thread's arrays for entries of `total` elements, of which `most` are kept. With
// several threads the arrays are as long as the tensor, but little of them is touched.
Kept MemoryFor(int64_t total, size_t most, int threads) {
  static thread_local Scratch<float> values;
  static thread_local Scratch<uint32_t> positions;
  const int parts = Parts(total, threads).count();
  const size_t n = (parts == 1 ? most : total) + parts * kCollectSlack;
  Kept kept;
  kept.values = values.Get(n);
  kept.positions = positions.Get(n);
  return kept;
}

}  // namespace

Kept KeepLargest(const float* x, const Scopes& scopes, const CodecSpec& spec, int threads) {
  if (scopes.total == 0) return Kept();
  Kept kept = MemoryFor(scopes.total, NumKept(spec, scopes.elements) * scopes.count, threads);
  if (scopes.strided) {
    KeepStrided(x, scopes, spec, threads, &kept);
  } else {
    KeepContiguous(x, scopes, spec, threads, &kept);
  }
  return kept;
}

Kept KeepAtLeast(const float* x, size_t n, uint32_t least, int threads) {
  Kept kept = MemoryFor(n, n, threads);
  CollectByParts(x, n, {least, n}, /*base=*/0, threads, &kept);
  return kept;
}

}  // namespace thinwire
