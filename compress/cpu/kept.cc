#include "compress/cpu/kept.h"

#include <algorithm>

#include "compress/cpu/half.h"
#include "compress/cpu/scratch.h"
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

// Selects for channels [first, first + num) at once, so that each cache line is read only once.
bool SelectChannels(const float* x, const Scopes& scopes, const CodecSpec& spec, int64_t first,
                    int64_t num, Selection* out) {
  static thread_local Scratch<float> memory;
  const int64_t rows = scopes.elements;
  float* columns = memory.Get(num * rows);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < num; ++c) columns[c * rows + r] = x[r * scopes.count + first + c];
  }
  for (int64_t c = 0; c < num; ++c) {
    out[c] = SelectLargest(columns + c * rows, rows, NumKept(spec, rows));
    if (!out[c].finite) return false;
    LeaveOutZeros(spec, &out[c]);
  }
  return true;
}

void KeepStrided(const float* x, const Scopes& scopes, const CodecSpec& spec, Kept* kept,
                 uint32_t* positions) {
  static thread_local Scratch<Selection> memory;
  constexpr int64_t kChannelsAtOnce = 16;
  Selection* selections = memory.Get(scopes.count);
  for (int64_t c = 0; c < scopes.count; c += kChannelsAtOnce) {
    const int64_t num = std::min(kChannelsAtOnce, scopes.count - c);
    kept->finite = SelectChannels(x, scopes, spec, c, num, selections + c);
    if (!kept->finite) return;
  }
  for (int64_t i = 0; i < scopes.total; i += scopes.count) {
    for (int64_t c = 0; c < scopes.count; ++c) {
      Selection& s = selections[c];
      const uint32_t magnitude = BitsOf(x[i + c]) & kMagnitudeMask;
      const bool is_tie = magnitude == s.threshold && !s.all_ties;
      if (magnitude < s.threshold || (is_tie && s.num_ties == 0)) continue;
      s.num_ties -= is_tie;
      kept->values[kept->count] = x[i + c];
      positions[kept->count++] = static_cast<uint32_t>(i + c);
    }
  }
}

}  // namespace

Kept KeepLargest(const float* x, const Scopes& scopes, const CodecSpec& spec) {
  static thread_local Scratch<float> values;
  static thread_local Scratch<uint32_t> positions;
  const size_t most = NumKept(spec, scopes.elements) * scopes.count + kCollectSlack;
  Kept kept;
  kept.values = values.Get(most);
  uint32_t* where = positions.Get(most);
  kept.positions = where;
  if (scopes.strided) {
    KeepStrided(x, scopes, spec, &kept, where);
  } else {
    KeepContiguous(x, scopes, spec, &kept, where);
  }
  return kept;
}

}  // namespace thinwire
