#include "compress/entropy/context_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
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
double TimesLogOfCount(uint64_t count) {
  constexpr uint64_t kEntries = 1 << 14;
  static const std::vector<double>& table = *[] {
    auto* const made = new std::vector<double>(kEntries);
    for (uint64_t i = 1; i < kEntries; ++i) (*made)[i] = TimesLog(static_cast<double>(i));
    return made;
  }();
  return count < kEntries ? table[count] : TimesLog(static_cast<double>(count));
}

// Returns the cost of bytes that have a table of their own: their entropy, sum of log2(total /
// count).
Cost CostOf(absl::Span<const uint32_t> counts) {
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
  cost.code_bits += TimesLogOfCount(total);
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

// Neighbours that are chosen: the numbers of their distances, ascending, and the sum of each code's
// neighbours.
struct Chosen {
  std::vector<size_t> distances;
  std::vector<uint8_t> sums;
};

// Estimates of the bits per code, from a sample of a string.
class Sample {
 public:
  // See ChooseNeighboursOf.
  Sample(size_t num_codes, size_t num_distances, absl::Span<const uint8_t> rows)
      : num_rows_(NumRows(num_codes)), magnitudes_(num_distances) {
    const size_t size = rows.size() / (1 + num_distances);
    bytes_.assign(rows.begin(), rows.begin() + size);
    for (const uint8_t byte : bytes_) num_symbols_ = std::max<size_t>(num_symbols_, byte + 1);
    for (auto& of_distance : magnitudes_) {
      rows.remove_prefix(size);
      of_distance.resize(size);
      for (size_t i = 0; i < size; ++i) {
        of_distance[i] = static_cast<uint8_t>(std::min((rows[i] + 1) / 2, kSums - 1));
      }
    }
  }

  Chosen None() const { return {{}, std::vector<uint8_t>(bytes_.size())}; }
  // Returns the chosen neighbours and those at distance number k.
  static std::vector<size_t> DistancesWith(const Chosen& chosen, size_t k) {
    std::vector<size_t> distances = chosen.distances;
    distances.insert(std::upper_bound(distances.begin(), distances.end(), k), k);
    return distances;
  }
  Chosen With(const Chosen& chosen, size_t k) const {
    return {DistancesWith(chosen, k), SumsWith(chosen.sums, k)};
  }

  // Returns the bits per code with the chosen neighbours, and with those at distance number k as
  // well.
  double Bits(const Chosen& chosen) {
    return Known(chosen.distances, [&] { return BitsWith(chosen.sums); });
  }
  double BitsWith(const Chosen& chosen, size_t k) {
    return Known(DistancesWith(chosen, k), [&] { return BitsWith(SumsWith(chosen.sums, k)); });
  }
  // Returns the bits per code if codes were taken in pairs, with one table.
  double BitsOfPairs() const {
    static_assert(kSampledRows % 2 == 0, "the rows of a piece are pairs");
    std::vector<uint16_t> pairs(bytes_.size() / 2);
    size_t large = 0;
    for (const uint8_t code : bytes_) large += code >= kLargeCode;
    for (size_t row = 0; row < pairs.size(); row += kStates) {
      const uint8_t *const first = &bytes_[2 * row], *const second = first + kStates;
      for (size_t i = 0; i < kStates; ++i) {
        pairs[row + i] = static_cast<uint16_t>(std::min(first[i], kLargeCode) |
                                               std::min(second[i], kLargeCode) << 4);
      }
    }
    std::array<uint32_t, kTables * kSymbols> counts;
    Count(pairs.data(), pairs.size(), kSymbols, counts.data());
    return BitsPerCode(CostOf(absl::MakeConstSpan(counts).subspan(0, kSymbols))) +
           8 * static_cast<double>(large) / static_cast<double>(bytes_.size());
  }

 private:
  static constexpr size_t kTables = 4;

  // Returns what the sums of these neighbours cost, which is computed once: layouts have the same
  // ones in common.
  template <typename Compute>
  double Known(const std::vector<size_t>& distances, const Compute& compute) {
    const auto found = known_.find(distances);
    return found != known_.end() ? found->second : known_[distances] = compute();
  }

  // Returns `sums` plus the magnitudes at distance number k, capped at 15, eight at a time in a
  // word. Bytes hold numbers of four bits. Bit 4 of a byte's sum says that it exceeds 15; times 15
  // it sets the four lower bits.
  std::vector<uint8_t> SumsWith(const std::vector<uint8_t>& sums, size_t k) const {
    static_assert(kSums == 16, "sums are numbers of four bits");
    constexpr uint64_t kOnes = 0x0101010101010101;
    std::vector<uint8_t> with(sums.size());
    for (size_t i = 0; i < with.size(); i += 8) {
      const uint64_t both = LoadAs<uint64_t>(&sums[i]) + LoadAs<uint64_t>(&magnitudes_[k][i]);
      const uint64_t too_large = (both >> 4 & kOnes) * 15;
      StoreAs((both | too_large) & 15 * kOnes, &with[i]);
    }
    return with;
  }

  double BitsWith(const std::vector<uint8_t>& sums) const {
    static thread_local Scratch<uint16_t> places_memory;
    static thread_local Scratch<uint32_t> counts_memory;
    // There is room for bytes up to the largest of the sample, which is small.
    const size_t n = num_symbols_, size = kSums * n;
    uint16_t* const places = places_memory.Get(sums.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      places[i] = static_cast<uint16_t>(sums[i] * n + bytes_[i]);
    }
    uint32_t* const counts = counts_memory.Get(kTables * size);
    Count(places, sums.size(), size, counts);
    double bits = 0;
    for (size_t sum = 0; sum < kSums; ++sum) {
      bits += BitsPerCode(CostOf(absl::MakeConstSpan(counts + sum * n, n)));
    }
    return bits;
  }

  // Sets counts[p] to the number of places that are p, for all p below `size`. Counts in kTables
  // tables in turn, so that a run of equal places need not wait for the increment just before.
  static void Count(const uint16_t* places, size_t n, size_t size, uint32_t* counts) {
    static_assert(kSampledRows * kStates % (2 * kTables) == 0, "also half a sample is whole fours");
    std::fill_n(counts, kTables * size, 0);
    uint32_t *const second = counts + size, *const third = second + size,
                    *const last = third + size;
    for (size_t i = 0; i < n; i += 4) {
      ++counts[places[i]];
      ++second[places[i + 1]];
      ++third[places[i + 2]];
      ++last[places[i + 3]];
    }
    for (size_t p = 0; p < size; ++p) counts[p] += second[p] + third[p] + last[p];
  }

  // Returns the bits per code, including its share of the tables.
  double BitsPerCode(const Cost& cost) const {
    return (cost.code_bits + kBitsOfChance * cost.entries) / static_cast<double>(bytes_.size()) +
           (BitsOf(cost) - cost.code_bits) / static_cast<double>(num_rows_ * kStates);
  }

  const size_t num_rows_;
  size_t num_symbols_ = 1;  // one more than the largest byte
  std::vector<uint8_t> bytes_;
  std::vector<std::vector<uint8_t>> magnitudes_;  // for each distance, at most kSums - 1
  std::map<std::vector<size_t>, double> known_;   // bits per code with the neighbours so far asked
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
  Chosen chosen = sample->None();
  double fewest = sample->Bits(chosen);
  while (neighbours->count < Neighbours::kMost) {
    const double before = fewest;
    size_t best = 0;
    for (size_t k = 0; k < distances.size(); ++k) {
      if (distances[k] % width != 0) continue;
      const double bits = sample->BitsWith(chosen, k);
      if (bits >= fewest || bits > (1 - kLeastSaved) * before) continue;
      fewest = bits;
      best = k;
    }
    if (fewest == before) break;
    chosen = sample->With(chosen, best);
    neighbours->rows[neighbours->count++] = static_cast<uint32_t>(distances[best] / width);
  }
  return fewest;
}

// Returns the first layout whose neighbours are nearly as good as the best of any layout; one
// without neighbours only if no layout does better.
ContextChoice ChooseInParts(size_t num_codes, absl::Span<const uint32_t> distances, Sample* sample,
                            double* bits) {
  ContextChoice choices[std::size(kWidths)];
  double of_width[std::size(kWidths)];
  for (size_t i = 0; i < std::size(kWidths); ++i) {
    choices[i].layout = {NumPartsOfCodes(num_codes), kWidths[i]};
    of_width[i] = ChooseAmong(distances, kWidths[i], sample, &choices[i].neighbours);
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
    choice = ChooseInParts(num_codes, distances, &sample, &fewest);
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
  std::vector<Context> contexts, pairs;  // pairs[c] joins contexts c and c + 1
  for (int sum = 0; sum < kSums; ++sum) {
    contexts.push_back({sum, counts[sum], BitsOf(CostOf(counts[sum]))});
    if (sum > 0) pairs.push_back(Joined(contexts[sum - 1], contexts[sum]));
  }
  // Join two neighbouring contexts as long as this saves bits, each time the two that save most.
  while (!pairs.empty()) {
    std::vector<double> saved;
    for (size_t c = 0; c < pairs.size(); ++c) {
      saved.push_back(contexts[c].bits + contexts[c + 1].bits - pairs[c].bits);
    }
    const auto best = static_cast<size_t>(absl::c_max_element(saved) - saved.begin());
    if (saved[best] < 0) break;
    contexts[best] = pairs[best];
    contexts.erase(contexts.begin() + best + 1);
    pairs.erase(pairs.begin() + best);
    if (best > 0) pairs[best - 1] = Joined(contexts[best - 1], contexts[best]);
    if (best < pairs.size()) pairs[best] = Joined(contexts[best], contexts[best + 1]);
  }
  uint16_t boundaries = 0;
  for (const Context& context : contexts) boundaries |= 1u << context.first;
  return boundaries & 0xFFFE;
}

}  // namespace thinwire
