#include "compress/entropy/context_choice.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/random.h"
#include "compress/bytes.h"
#include "compress/entropy/pairs.h"
#include "compress/entropy/stretches.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Approximate number of pieces in a sample.
constexpr size_t kPieces = 32;
// Least number of rows for which the saving of several contexts exceeds their tables' cost.
constexpr size_t kLeastRows = 64;
// Bits of a table, and more for each byte that occurs in it; estimates.
constexpr double kBitsOfTable = 24, kBitsOfEntry = 10;
// Optimism of a table: it promises half a nat per entry less for the bytes from which it was made
// than for others.
constexpr double kBitsOfChance = 0.72;
// Least share of all bits that another neighbour must save to be worth the time.
constexpr double kLeastSaved = 0.003;
// Limit of small samples: one of this many rows or fewer says too little about all codes. The
// estimate from a larger one may be wrong by the share kSampleError.
constexpr size_t kFewRows = 1024;
constexpr double kSampleError = 0.1;

// Cost of bytes and of the tables that code them.
struct Cost {
  double code_bits = 0;
  int tables = 0, entries = 0;
};

// Returns count * log2(count).
double TimesLog(double count) { return count * std::log2(count); }

// Returns TimesLog(count), from a table for small counts, as samples have them.
double TimesLogOfCount(uint32_t count) {
  constexpr uint32_t kEntries = 1 << 13;
  static const std::vector<double>& table = *[] {
    auto* const made = new std::vector<double>(kEntries);
    for (uint32_t i = 1; i < kEntries; ++i) (*made)[i] = TimesLog(i);
    return made;
  }();
  return count < kEntries ? table[count] : TimesLog(count);
}

// Returns the cost of bytes that have a table of their own: their entropy, sum of log2(total /
// count).
Cost CostOf(const Frequencies& counts) {
  Cost cost;
  uint64_t total = 0;
  for (const uint32_t count : counts) {
    if (count == 0) continue;
    ++cost.entries;
    total += count;
    cost.code_bits -= TimesLogOfCount(count);
  }
  if (cost.entries == 0) return cost;
  cost.tables = 1;
  cost.code_bits += TimesLog(static_cast<double>(total));
  return cost;
}

double BitsOf(const Cost& cost) {
  return cost.code_bits + kBitsOfTable * cost.tables + kBitsOfEntry * cost.entries;
}

// Appends to *to the codes that stand `distance` codes before those of a piece; 0 where there are
// none.
void AppendPiece(absl::Span<const uint8_t> codes, int64_t begin, int64_t distance,
                 std::vector<uint8_t>* to) {
  const auto n = static_cast<int64_t>(codes.size());
  for (int64_t row = 0; row < static_cast<int64_t>(kSampledRows); ++row) {
    for (int64_t lane = 0; lane < static_cast<int64_t>(kStates); ++lane) {
      const int64_t i = PlaceInPiece(n, begin, row, lane, distance);
      to->push_back(0 <= i && i < n ? codes[i] : 0);
    }
  }
}

// Factor by which a layout may exceed the bits of the best one if its rows have longer runs of
// codes. kWidths are the lengths of these runs, the preferred one first.
constexpr double kMoreBits = 1.01;
constexpr size_t kWidths[] = {32, 16, 1};

// Estimates of the bits per code, from a sample of a string.
class Sample {
 public:
  // See ChooseNeighboursOf.
  Sample(size_t num_codes, size_t num_distances, absl::Span<const uint8_t> rows)
      : num_rows_(NumRows(num_codes)), magnitudes_(num_distances) {
    const size_t size = rows.size() / (1 + num_distances);
    bytes_.assign(rows.begin(), rows.begin() + size);
    for (auto& of_distance : magnitudes_) {
      rows.remove_prefix(size);
      for (const uint8_t code : absl::MakeConstSpan(rows.data(), size)) {
        of_distance.push_back(static_cast<uint8_t>(std::min((code + 1) / 2, kSums - 1)));
      }
    }
    sums_.resize(size);
  }

  // Adds the neighbours at distance number k to the chosen ones.
  void Choose(size_t k) { sums_ = SumsWith(k); }

  // Returns the bits per code with the chosen neighbours.
  double Bits() const { return BitsWith(sums_); }
  // Returns the bits per code if codes were taken in pairs, with one table.
  double BitsOfPairs() const {
    Frequencies pairs = {};
    double large = 0;
    const auto small = [&large](uint8_t code) {
      large += code >= kLargeCode;
      return std::min(code, kLargeCode);
    };
    static_assert(kSampledRows % 2 == 0, "the rows of a piece are pairs");
    for (size_t row = 0; row < bytes_.size(); row += 2 * kStates) {
      for (size_t i = row; i < row + kStates; ++i) {
        ++pairs[small(bytes_[i]) | small(bytes_[i + kStates]) << 4];
      }
    }
    return BitsPerCode(CostOf(pairs)) + 8 * large / static_cast<double>(bytes_.size());
  }
  // Returns the bits per code with the neighbours at distance number k as well.
  double BitsWith(size_t k) const { return BitsWith(SumsWith(k)); }

 private:
  // Returns the chosen sums plus the magnitudes at distance number k, capped at 15, eight at a time
  // in a word. Bytes hold numbers of four bits. Bit 4 of a byte's sum says that it exceeds 15;
  // times 15 it sets the four lower bits.
  std::vector<uint8_t> SumsWith(size_t k) const {
    static_assert(kSums == 16, "sums are numbers of four bits");
    constexpr uint64_t kOnes = 0x0101010101010101;
    std::vector<uint8_t> sums(sums_.size());
    for (size_t i = 0; i < sums.size(); i += 8) {
      const uint64_t both = LoadAs<uint64_t>(&sums_[i]) + LoadAs<uint64_t>(&magnitudes_[k][i]);
      const uint64_t too_large = (both >> 4 & kOnes) * 15;
      StoreAs((both | too_large) & 15 * kOnes, &sums[i]);
    }
    return sums;
  }

  double BitsWith(const std::vector<uint8_t>& sums) const {
    SumCounter counter;
    counter.Add(bytes_, sums.data());
    double bits = 0;
    for (const Frequencies& of_sum : counter.Total()) bits += BitsPerCode(CostOf(of_sum));
    return bits;
  }

  // Returns the bits per code, including its share of the tables.
  double BitsPerCode(const Cost& cost) const {
    return (cost.code_bits + kBitsOfChance * cost.entries) / static_cast<double>(bytes_.size()) +
           (BitsOf(cost) - cost.code_bits) / static_cast<double>(num_rows_ * kStates);
  }

  const size_t num_rows_;
  std::vector<uint8_t> bytes_;
  std::vector<std::vector<uint8_t>> magnitudes_;  // for each distance, at most kSums - 1
  std::vector<uint8_t> sums_;                     // of the chosen neighbours
};

// Context: consecutive sums, from `first` on, that share a table.
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
  constexpr size_t kMany = 1 << 19;  // for which it pays to clear 2^16 counters
  size_t i = bytes.size() < kMany ? 0 : AddByTwos(bytes, sums);
  for (; i + 2 <= bytes.size(); i += 2) {
    ++even_[sums[i]][bytes[i]];
    ++odd_[sums[i + 1]][bytes[i + 1]];
  }
  if (i < bytes.size()) ++even_[sums[i]][bytes[i]];
}

size_t SumCounter::AddByTwos(absl::Span<const uint8_t> bytes, const uint8_t* sums) {
  static_assert(kSums == 16, "sums are numbers of four bits");
  static thread_local Scratch<uint32_t> memory;
  constexpr size_t kTwos = 1 << 16;
  uint32_t* const twos = memory.Get(kTwos);
  std::fill_n(twos, kTwos, 0);
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const auto eight = LoadAs<uint64_t>(&bytes[i]);
    if ((eight & 0xF0F0F0F0F0F0F0F0) != 0) {
      for (size_t j = i; j < i + 8; ++j) ++odd_[sums[j]][bytes[j]];
      continue;
    }
    // Each byte now holds a sum in its upper and a code in its lower four bits. Two such bytes
    // index one counter, so that eight codes take four increments.
    const uint64_t both = LoadAs<uint64_t>(sums + i) << 4 | eight;
    for (int shift = 0; shift < 64; shift += 16) ++twos[both >> shift & 0xFFFF];
  }
  for (size_t two = 0; two < kTwos; ++two) {
    even_[two >> 4 & 15][two & 15] += twos[two];
    even_[two >> 12][two >> 8 & 15] += twos[two];
  }
  return i;
}

SumCounts SumCounter::Total() const {
  SumCounts total = even_;
  for (int sum = 0; sum < kSums; ++sum) {
    for (int s = 0; s < kSymbols; ++s) total[sum][s] += odd_[sum][s];
  }
  return total;
}

std::vector<uint32_t> SampledPieces(size_t num_codes, absl::Span<const uint32_t> distances) {
  std::vector<uint32_t> pieces;
  const size_t num_rows = NumRows(num_codes);
  if (distances.empty() || num_rows < kLeastRows) return pieces;
  const bool is_in_parts = num_codes >= kLeastInParts;
  const size_t all = is_in_parts ? num_codes : num_rows;
  const size_t length = is_in_parts ? kSampledRows * kStates : kSampledRows;
  const size_t stretch = std::max(all / kPieces, length);
  // Each piece begins at a random place of its stretch: a fixed place might always meet, for
  // instance, the first pixels of an image's rows.
  RandomStream random(stretch);
  for (size_t begin = 0; begin + stretch <= all; begin += stretch) {
    pieces.push_back(static_cast<uint32_t>(begin + random.Next() % (stretch - length + 1)));
  }
  return pieces;
}

namespace {

// Adds neighbours greedily: the best of the distances that `width` divides, then the best in
// addition to it, and so on. Returns the bits per code.
double ChooseAmong(absl::Span<const uint32_t> distances, size_t width, Sample* sample,
                   Neighbours* neighbours) {
  double fewest = sample->Bits();
  while (neighbours->count < Neighbours::kMost) {
    const double before = fewest;
    size_t best = 0;
    for (size_t k = 0; k < distances.size(); ++k) {
      if (distances[k] % width != 0) continue;
      const double bits = sample->BitsWith(k);
      if (bits >= fewest || bits > (1 - kLeastSaved) * before) continue;
      fewest = bits;
      best = k;
    }
    if (fewest == before) break;
    sample->Choose(best);
    neighbours->rows[neighbours->count++] = static_cast<uint32_t>(distances[best] / width);
  }
  return fewest;
}

// Returns the first layout whose neighbours are nearly as good as the best of any layout; one
// without neighbours only if no layout does better.
ContextChoice ChooseInParts(size_t num_codes, absl::Span<const uint32_t> distances,
                            const Sample& sample, double* bits) {
  ContextChoice choices[std::size(kWidths)];
  double of_width[std::size(kWidths)];
  for (size_t i = 0; i < std::size(kWidths); ++i) {
    Sample with = sample;
    choices[i].layout = {NumPartsOfCodes(num_codes), kWidths[i]};
    of_width[i] = ChooseAmong(distances, kWidths[i], &with, &choices[i].neighbours);
  }
  const size_t best =
      std::min_element(std::begin(of_width), std::end(of_width)) - std::begin(of_width);
  size_t i = 0;
  while (i != best &&
         (choices[i].neighbours.count == 0 || of_width[i] > kMoreBits * of_width[best])) {
    ++i;
  }
  *bits = of_width[i];
  return choices[i];
}

}  // namespace

ContextChoice ChooseNeighboursOf(size_t num_codes, absl::Span<const uint32_t> distances,
                                 absl::Span<const uint8_t> codes) {
  Sample sample(num_codes, distances.size(), codes);
  double fewest = 0;
  ContextChoice choice;
  if (num_codes >= kLeastInParts) {
    choice = ChooseInParts(num_codes, distances, sample, &fewest);
  } else {
    fewest = ChooseAmong(distances, /*width=*/1, &sample, &choice.neighbours);
  }
  choice.may_pay_in_pairs = choice.neighbours.count == 0 || NumRows(num_codes) <= kFewRows ||
                            sample.BitsOfPairs() <= (1 + kSampleError) * fewest;
  return choice;
}

ContextChoice ChooseNeighbours(absl::Span<const uint8_t> codes,
                               absl::Span<const uint32_t> distances) {
  const std::vector<uint32_t> pieces = SampledPieces(codes.size(), distances);
  if (pieces.empty()) return {};
  std::vector<uint8_t> sample;
  sample.reserve((1 + distances.size()) * pieces.size() * kSampledRows * kStates);
  for (const uint32_t begin : pieces) AppendPiece(codes, begin, 0, &sample);
  for (const uint32_t distance : distances) {
    for (const uint32_t begin : pieces) AppendPiece(codes, begin, distance, &sample);
  }
  return ChooseNeighboursOf(codes.size(), distances, sample);
}

uint16_t ChooseBoundaries(const SumCounts& counts) {
  std::vector<Context> contexts;
  for (int sum = 0; sum < kSums; ++sum) {
    contexts.push_back({sum, counts[sum], BitsOf(CostOf(counts[sum]))});
  }
  // Join two neighbouring contexts as long as this saves bits, each time the two that save most.
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
