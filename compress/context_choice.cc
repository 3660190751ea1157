#include "compress/context_choice.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/random.h"

namespace thinwire {
namespace {

// This many parts of the rows are looked at, of so many rows each.
constexpr size_t kParts = 32, kRowsOfPart = 8;
// Of fewer rows, tables for several contexts take what they save.
constexpr size_t kLeastRows = 64;
// A table takes about this many bits, and so many more for each byte that is in it.
constexpr double kBitsOfTable = 24, kBitsOfEntry = 10;
// Of bytes that its own frequencies were taken from, a table promises fewer bits than of others:
// half a nat for each entry.
constexpr double kBitsOfChance = 0.72;
// Less than this share of all bits is not worth the time.
constexpr double kLeastSaved = 0.003;

struct Cost {
  double code_bits = 0;
  int tables = 0, entries = 0;
};

// Of bytes with a table of their own.
Cost CostOf(const Frequencies& counts) {
  Cost cost;
  double total = 0;
  for (const uint32_t count : counts) {
    if (count == 0) continue;
    ++cost.entries;
    total += count;
    cost.code_bits -= count * std::log2(count);
  }
  if (cost.entries == 0) return cost;
  cost.tables = 1;
  cost.code_bits += total * std::log2(total);
  return cost;
}

double BitsOf(const Cost& cost) {
  return cost.code_bits + kBitsOfTable * cost.tables + kBitsOfEntry * cost.entries;
}

// Bits for each byte of a string, from what is seen of some parts of it.
class Sample {
 public:
  explicit Sample(absl::Span<const uint8_t> rows) : rows_(rows) {
    const size_t num_rows = rows.size() / kStates;
    const size_t stretch = std::max(num_rows / kParts, kRowsOfPart);
    // Each begins somewhere in its stretch: the same place of all might be that of the first pixels
    // of an image's rows.
    RandomStream random(stretch);
    for (size_t begin = 0; begin + stretch <= num_rows; begin += stretch) {
      parts_.push_back(begin + random.Next() % (stretch - kRowsOfPart + 1));
    }
    looked_ = parts_.size() * kRowsOfPart * kStates;
  }

  double BitsWith(const Neighbours& neighbours) const {
    SumCounter counter;
    std::array<uint8_t, kRowsOfPart * kStates> sums;
    for (const size_t row : parts_) {
      SumsOfNeighbours(neighbours, rows_.data(), row, kRowsOfPart, sums.data());
      counter.Add(rows_.subspan(row * kStates, sums.size()), sums.data());
    }
    double bits = 0;
    for (const Frequencies& of_sum : counter.Total()) {
      const Cost cost = CostOf(of_sum);
      bits += (cost.code_bits + kBitsOfChance * cost.entries) / static_cast<double>(looked_) +
              (BitsOf(cost) - cost.code_bits) / static_cast<double>(rows_.size());
    }
    return bits;
  }

 private:
  const absl::Span<const uint8_t> rows_;
  std::vector<size_t> parts_;  // the row at which each begins
  size_t looked_ = 0;
};

// Sums that follow one another.
struct Context {
  int first;
  Frequencies counts;
  double bits;
};

Context Joined(const Context& a, const Context& b) {
  Context joined = a;
  for (int s = 0; s < kSymbols; ++s) joined.counts[s] += b.counts[s];
  joined.bits = BitsOf(CostOf(joined.counts));
  return joined;
}

}  // namespace

void SumCounter::Add(absl::Span<const uint8_t> bytes, const uint8_t* sums) {
  size_t i = 0;
  for (; i + 2 <= bytes.size(); i += 2) {
    ++even_[sums[i]][bytes[i]];
    ++odd_[sums[i + 1]][bytes[i + 1]];
  }
  if (i < bytes.size()) ++even_[sums[i]][bytes[i]];
}

SumCounts SumCounter::Total() const {
  SumCounts total = even_;
  for (int sum = 0; sum < kSums; ++sum) {
    for (int s = 0; s < kSymbols; ++s) total[sum][s] += odd_[sum][s];
  }
  return total;
}

// Takes the best of all, then the best beside it, and so on.
Neighbours ChooseNeighbours(absl::Span<const uint8_t> rows, absl::Span<const uint32_t> distances) {
  Neighbours chosen;
  if (distances.empty() || rows.size() < kLeastRows * kStates) return chosen;
  const Sample sample(rows);
  double fewest = sample.BitsWith(chosen);
  while (chosen.count < Neighbours::kMost) {
    Neighbours more = chosen;
    ++more.count;
    const double before = fewest;
    for (const uint32_t distance : distances) {
      more.rows[chosen.count] = distance;
      const double bits = sample.BitsWith(more);
      if (bits >= fewest || bits > (1 - kLeastSaved) * before) continue;
      fewest = bits;
      chosen.rows[chosen.count] = distance;
    }
    if (fewest == before) return chosen;
    ++chosen.count;
  }
  return chosen;
}

uint16_t ChooseBoundaries(const SumCounts& counts) {
  std::vector<Context> contexts;
  for (int sum = 0; sum < kSums; ++sum) {
    contexts.push_back({sum, counts[sum], BitsOf(CostOf(counts[sum]))});
  }
  // As long as it saves bits, two contexts become one, first the two that save most.
  while (contexts.size() > 1) {
    std::vector<Context> pairs;
    std::vector<double> saved;
    for (size_t c = 0; c + 1 < contexts.size(); ++c) {
      pairs.push_back(Joined(contexts[c], contexts[c + 1]));
      saved.push_back(contexts[c].bits + contexts[c + 1].bits - pairs[c].bits);
    }
    const auto best = absl::c_max_element(saved) - saved.begin();
    if (saved[best] < 0) break;
    contexts[best] = pairs[best];
    contexts.erase(contexts.begin() + best + 1);
  }
  uint16_t boundaries = 0;
  for (const Context& context : contexts) boundaries |= 1u << context.first;
  return boundaries & 0xFFFE;
}

}  // namespace thinwire
