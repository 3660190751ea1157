// By which neighbours the entropy coder foretells how large a code is, and which sums of them share
// a table: chosen for each string, by what it saves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/host_device.h"
#include "compress/entropy/rans.h"
#include "compress/entropy/stretches.h"

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

// Codes of which there are so many are dealt to parts, so that these can be coded at once.
constexpr size_t kLeastInParts = 1 << 17;
constexpr size_t kCodesOfPart = 1 << 16, kMostParts = UINT16_MAX;

// The findings about a sample of the codes.
struct ContextChoice {
  Neighbours neighbours;  // none if one table for all codes is likely to take as few bytes
  RowLayout layout;       // in which they are
  // False if contexts by these neighbours surely take fewer bytes than codes two at a time
  // (pairs_layout.h).
  bool may_pay_in_pairs = true;
};

// Chooses which codes, of those at these distances before one, foretell it, and the rows
// (cpu/stretches.h) in which they stand in its place. Looks at some of the codes if they are many.
ContextChoice ChooseNeighbours(absl::Span<const uint8_t> codes,
                               absl::Span<const uint32_t> distances);

// The same of codes that are elsewhere, from a sample of them: pieces of kSampledRows rows, as they
// begin, in order; none if there are too few codes for neighbours.
constexpr size_t kSampledRows = 8;
std::vector<uint32_t> SampledPieces(size_t num_codes, absl::Span<const uint32_t> distances);
// Where code `lane` of row `row` of a piece stands among all codes, `distance` codes before it; not
// there if less than 0 or not below num_codes. Of fewer than kLeastInParts codes a piece begins at
// a row of 32 stretches; of more it is a run, in 32 stretches of its own.
HOST_DEVICE inline int64_t PlaceInPiece(int64_t num_codes, int64_t begin, int64_t row, int64_t lane,
                                        int64_t distance) {
  constexpr auto kRows = static_cast<int64_t>(kSampledRows), kLanes = static_cast<int64_t>(kStates);
  if (num_codes >= static_cast<int64_t>(kLeastInParts)) {
    return begin + lane * kRows + row - distance;
  }
  const int64_t num_rows = (num_codes + kLanes - 1) / kLanes, j = begin + row - distance;
  return j < 0 ? -1 : lane * num_rows + j;
}
// `sample`: the codes of the pieces, row by row, one piece behind the other; then for each distance
// those so many codes before them, with zeros where there are none.
ContextChoice ChooseNeighboursOf(size_t num_codes, absl::Span<const uint32_t> distances,
                                 absl::Span<const uint8_t> sample);

// Bit s is set where sums from s on have another table than those below, so that codes and tables
// take the fewest bits. Bit 0 is not.
uint16_t ChooseBoundaries(const SumCounts& counts);

}  // namespace thinwire
