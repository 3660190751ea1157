#include "compress/entropy/frequencies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "compress/bytes.h"
#include "compress/refusals.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Flag of a frequency of two bytes: a byte below it is a frequency; one with it has a frequency's
// upper seven bits.
constexpr uint8_t kTwoBytes = 0x80;

// Counts one byte at a time in four histograms in turn, so that a run of equal bytes need not wait
// for the increment just before.
void CountSingly(absl::Span<const uint8_t> bytes, Frequencies* counts) {
  std::array<Frequencies, 4> parts = {};
  const size_t whole = bytes.size() / 4 * 4;
  for (size_t i = 0; i < whole; i += 4) {
    for (size_t part = 0; part < 4; ++part) ++parts[part][bytes[i + part]];
  }
  for (size_t i = whole; i < bytes.size(); ++i) ++parts[0][bytes[i]];
  for (int s = 0; s < kSymbols; ++s) {
    (*counts)[s] = parts[0][s] + parts[1][s] + parts[2][s] + parts[3][s];
  }
}

// Counts two bytes at a time in 2^16 counters, which halves the increments, and then adds each
// counter to the two bytes it stands for. The length is a multiple of eight.
void CountByTwos(absl::Span<const uint8_t> bytes, Frequencies* counts) {
  static thread_local Scratch<uint32_t> memory;
  constexpr size_t kTwos = size_t{kSymbols} * kSymbols;
  uint32_t* const twos = memory.Get(kTwos);
  std::fill_n(twos, kTwos, 0);
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const auto eight = LoadAs<uint64_t>(bytes.data() + i);
    for (int shift = 0; shift < 64; shift += 16) ++twos[eight >> shift & 0xFFFF];
  }
  for (size_t two = 0; two < kTwos; ++two) {
    (*counts)[two % kSymbols] += twos[two];
    (*counts)[two / kSymbols] += twos[two];
  }
}

}  // namespace

Frequencies CountsOf(absl::Span<const uint8_t> bytes) {
  constexpr size_t kMany = 1 << 19;  // for which it pays to clear 2^16 counters
  const size_t by_twos = bytes.size() < kMany ? 0 : bytes.size() / 8 * 8;
  Frequencies counts = {};
  CountSingly(bytes.subspan(by_twos), &counts);
  if (by_twos > 0) CountByTwos(bytes.subspan(0, by_twos), &counts);
  return counts;
}

void AddCounts(const Frequencies& more, Frequencies* counts) {
  for (int s = 0; s < kSymbols; ++s) (*counts)[s] += more[s];
}

// Rounds each frequency to nearest, then moves single frequencies by one where it costs the fewest
// bits, until the sum is 2^12.
Frequencies Scaled(const Frequencies& counts) {
  const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  Frequencies scaled = {};
  if (total == 0) {
    scaled[0] = kScale;
    return scaled;
  }
  uint32_t sum = 0;
  for (int s = 0; s < kSymbols; ++s) {
    if (counts[s] == 0) continue;
    const uint64_t nearest = (2 * uint64_t{counts[s]} * kScale + total) / (2 * total);
    scaled[s] = static_cast<uint32_t>(std::max<uint64_t>(1, nearest));
    sum += scaled[s];
  }
  // Raising a frequency from f to f + 1 saves about count / ((f + 1/2) ln 2) bits; `odd` is 2 f
  // + 1. Each move changes one symbol's value, and only that one is divided anew.
  const auto value = [&](int s, uint32_t odd) { return (uint64_t{counts[s]} << 16) / odd; };
  std::array<uint64_t, kSymbols> values;
  if (sum < kScale) {
    for (int s = 0; s < kSymbols; ++s) values[s] = value(s, 2 * scaled[s] + 1);
    for (; sum < kScale; ++sum) {
      const auto best = std::max_element(values.begin(), values.end()) - values.begin();
      ++scaled[best];
      values[best] = value(best, 2 * scaled[best] + 1);
    }
  } else {
    const auto lowered = [&](int s) {
      return scaled[s] < 2 ? UINT64_MAX : value(s, 2 * scaled[s] - 1);  // none becomes 0
    };
    for (int s = 0; s < kSymbols; ++s) values[s] = lowered(s);
    for (; sum > kScale; --sum) {
      const auto best = std::min_element(values.begin(), values.end()) - values.begin();
      --scaled[best];
      values[best] = lowered(best);
    }
  }
  return scaled;
}

double CodedBits(const Frequencies& counts, const Frequencies& scaled) {
  double bits = 0;
  for (int s = 0; s < kSymbols; ++s) {
    if (counts[s] > 0) bits += counts[s] * (kScaleBits - std::log2(scaled[s]));
  }
  return bits;
}

size_t TableBytes(const Frequencies& scaled) {
  uint8_t bytes[kMaxTableBytes];
  return static_cast<size_t>(WriteTable(scaled, bytes) - bytes);
}

uint8_t* WriteTable(const Frequencies& scaled, uint8_t* to) {
  for (int s = 0; s < kSymbols; ++s) {
    if (scaled[s] == 0) {
      int more = 0;
      while (s + 1 < kSymbols && scaled[s + 1] == 0) ++s, ++more;
      *to++ = 0;
      *to++ = static_cast<uint8_t>(more);
    } else if (scaled[s] < kTwoBytes) {
      *to++ = static_cast<uint8_t>(scaled[s]);
    } else {
      *to++ = static_cast<uint8_t>(kTwoBytes | scaled[s] >> 8);
      *to++ = static_cast<uint8_t>(scaled[s]);
    }
  }
  return to;
}

Error ReadTable(absl::Span<const uint8_t>* frame, Frequencies* scaled) {
  *scaled = {};
  uint32_t sum = 0;
  size_t at = 0;
  for (int s = 0; s < kSymbols;) {
    const uint8_t first = at < frame->size() ? (*frame)[at] : 0;
    const bool is_single = first != 0 && first < kTwoBytes;
    if (at + (is_single ? 1 : 2) > frame->size())
      return MakeError(kRefused, "entropy: a table that is cut short");
    const uint8_t second = is_single ? 0 : (*frame)[at + 1];
    at += is_single ? 1 : 2;
    if (first == 0) {
      s += 1 + second;
      if (s > kSymbols)
        return MakeError(kRefused, "entropy: a table of %d bytes, want %d", s, kSymbols);
      continue;
    }
    (*scaled)[s] = is_single ? first : (first - kTwoBytes) * 256u + second;
    if (!is_single && (*scaled)[s] < kTwoBytes) {
      return MakeError(kRefused, "entropy: a small frequency in two bytes");
    }
    sum += (*scaled)[s++];
  }
  if (sum != kScale) {
    return MakeError(kRefused, "entropy: frequencies that add up to %u, want %u", sum, kScale);
  }
  frame->remove_prefix(at);
  return {};
}

}  // namespace thinwire
