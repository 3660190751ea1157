// Context models of the entropy coder: which earlier codes (neighbours) foretell how large a code
// is, and which sums of their magnitudes share a frequency table. Both are chosen for each string,
// by the bits that they save.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/host_device.h"
#include "compress/entropy/rans.h"
#include "compress/entropy/stretches.h"

namespace thinwire {

// Histogram of the bytes for each sum of their neighbours' magnitudes.
using SumCounts = std::array<Frequencies, kSums>;

// Counts bytes by the sum of their neighbours.
class SumCounter {
 public:
  // Adds `bytes` to the counts; sums[i] is the sum of the neighbours of bytes[i].
  void Add(absl::Span<const uint8_t> bytes, const uint8_t* sums);
  SumCounts Total() const;

 private:
  // Counts groups of eight bytes, two bytes at a time if all eight are below 16. Returns how many
  // bytes are counted; fewer than eight remain.
  size_t AddByTwos(absl::Span<const uint8_t> bytes, const uint8_t* sums);

  // Counters of bytes at even and odd places (AddByTwos differs). Two sets, so that a run of equal
  // bytes need not wait for the increment just before.
  SumCounts even_ = {}, odd_ = {};
};

// Strings of at least kLeastInParts codes are divided into parts, which can be coded at once.
constexpr size_t kLeastInParts = 1 << 17;
// Returns how many parts the encoder makes of `num_codes` codes.
constexpr size_t NumPartsOfCodes(size_t num_codes) {
  constexpr size_t kCodesOfPart = 1 << 16, kMostParts = UINT16_MAX;
  return num_codes < kLeastInParts ? 1 : std::min(num_codes / kCodesOfPart, kMostParts);
}

// Result of ChooseNeighbours.
struct ContextChoice {
  Neighbours neighbours;  // none if one table for all codes is likely to take as few bytes
  RowLayout layout;       // in whose rows the neighbours are found
  // False if coding with these neighbours surely takes fewer bytes than coding codes in pairs
  // (pairs_layout.h).
  bool may_pay_in_pairs = true;
};

// Chooses which of the codes at `distances` before a code foretell it, and the rows
// (stretches.h) in which those codes stand in the same place as it. Looks at a sample if there
// are many codes.
ContextChoice ChooseNeighbours(absl::Span<const uint8_t> codes,
                               absl::Span<const uint32_t> distances);

// ChooseNeighbours for codes in other memory: SampledPieces says which pieces of the codes to
// fetch, ChooseNeighboursOf chooses from them. A piece has kSampledRows rows. SampledPieces returns
// where each begins, ascending; none if there are too few codes for neighbours.
constexpr size_t kSampledRows = 8;
std::vector<uint32_t> SampledPieces(size_t num_codes, absl::Span<const uint32_t> distances);
// Returns the index of the code that stands `distance` codes before code `lane` of row `row` of a
// piece. There is no such code if the index is below 0 or not below num_codes. With fewer than
// kLeastInParts codes a piece begins at a row of 32 stretches; with more it is a run of codes, in
// 32 stretches of its own.
HOST_DEVICE inline int64_t PlaceInPiece(int64_t num_codes, int64_t begin, int64_t row, int64_t lane,
                                        int64_t distance) {
  constexpr auto kRows = static_cast<int64_t>(kSampledRows), kLanes = static_cast<int64_t>(kStates);
  if (num_codes >= static_cast<int64_t>(kLeastInParts)) {
    return begin + lane * kRows + row - distance;
  }
  const int64_t num_rows = (num_codes + kLanes - 1) / kLanes, j = begin + row - distance;
  return j < 0 ? -1 : lane * num_rows + j;
}
// Chooses from `sample`: the codes of all pieces, row by row, one piece after the other. For each
// distance the codes that stand that far before them follow, zeros where there are none.
ContextChoice ChooseNeighboursOf(size_t num_codes, absl::Span<const uint32_t> distances,
                                 absl::Span<const uint8_t> sample);

// Returns a bit set: bit s is set where sums from s on have another table than the sums below. It
// is chosen so that codes and tables take the fewest bits. Bit 0 is never set.
uint16_t ChooseBoundaries(const SumCounts& counts);

}  // namespace thinwire
