// By which neighbours the entropy coder foretells how large a code is, and which sums of them share
// a table: chosen for each string, by what it saves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compress/cpu/rans.h"

namespace thinwire {

// How often each byte is there, for each sum of its neighbours.
using SumCounts = std::array<Frequencies, kSums>;

class SumCounter {
 public:
  // `sums` of a byte each.
  void Add(absl::Span<const uint8_t> bytes, const uint8_t* sums);
  SumCounts Total() const;

 private:
  // Of eight bytes below 16 two at a time, each with its sum. Returns how many bytes are counted:
  // the rest are fewer than eight.
  size_t AddByTwos(absl::Span<const uint8_t> bytes, const uint8_t* sums);

  // They take turns: a run of equal bytes does not wait for itself.
  SumCounts even_ = {}, odd_ = {};
};

// The findings about a sample of the codes.
struct ContextChoice {
  Neighbours neighbours;  // none if one table for all codes is likely to take as few bytes
  // False if contexts by these neighbours surely take fewer bytes than codes two at a time
  // (pairs_layout.h).
  bool may_pay_in_pairs = true;
};

// Of those that are so many codes before one, in rows of their stretches (cpu/stretches.h), which
// to look at. Looks at a part of the codes if they are many.
ContextChoice ChooseNeighbours(absl::Span<const uint8_t> codes,
                               absl::Span<const uint32_t> distances);

// The same of codes that are elsewhere, from a sample of them: the first rows of the parts that are
// looked at, kSampledRows of each, in order; none if there are too few codes for neighbours.
constexpr size_t kSampledRows = 8;
std::vector<uint32_t> SampledParts(size_t num_codes, absl::Span<const uint32_t> distances);
// `sample`: the rows of the parts, one part behind the other; then for each distance those so many
// rows before them, with zeros before the first row.
ContextChoice ChooseNeighboursOf(size_t num_codes, absl::Span<const uint32_t> distances,
                                 absl::Span<const uint8_t> sample);

// Bit s is set where sums from s on have another table than those below, so that codes and tables
// take the fewest bits. Bit 0 is not.
uint16_t ChooseBoundaries(const SumCounts& counts);

}  // namespace thinwire
