// Layout of frames whose codes are coded two at a time, and their size. The format is in
// docs/compression.md; pairs_frame.h writes and reads whole frames.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compress/entropy/pairs.h"
#include "compress/entropy/rans.h"
#include "compress/entropy/stretches.h"
#include "tensor/error.h"

namespace thinwire {

constexpr uint8_t kPairsForm = 16;  // stands where other frames have their number of neighbours

// Size of the head: the number of bytes, the form, and the members of PairsHead.
constexpr size_t kPairsHeadBytes = 19;
constexpr size_t kPartLengthBytes = 4;

// Numbers that the head of such a frame holds.
struct PairsHead {
  size_t begin = 0, count = 0;          // where the codes are, and how many
  size_t num_large = 0, num_parts = 1;  // codes from kLargeCode on; parts

  size_t num_rows() const { return NumRows(NumPairs(count)); }
  // Returns the index of a part's first byte among the bytes of all rows.
  size_t part_begin(size_t part) const { return part * num_rows() / num_parts * kStates; }
};

// First about kPairLooks codes are sampled, evenly. If more than kMostLargeLooks of these are
// large, pairs do not pay.
constexpr size_t kPairLooks = 4096, kMostLargeLooks = kPairLooks / 4;
constexpr size_t PairLookStride(size_t codes) { return codes / kPairLooks + 1; }
constexpr bool MayPayInPairs(size_t codes, size_t large_looks) {
  return codes <= kPairLooks || large_looks <= kMostLargeLooks;
}

// Returns how many parts the encoder makes of `rows` rows.
size_t NumPartsOf(size_t rows);

// Table of the pairs, and the expected size of the frame of a string of `num_bytes` bytes.
// PlanPairs makes it from `pairs`, the histogram of the pairs.
struct PairsPlan {
  Frequencies table;
  double frame_bytes;
};
PairsPlan PlanPairs(size_t num_bytes, const PairsHead& head, const Frequencies& pairs);

// Returns the histogram of the codes, from that of the pairs and that of the large codes.
Frequencies CodesOfPairs(const PairsHead& head, const Frequencies& pairs, const Frequencies& large);

// Writes the head and returns its end, `to` + kPairsHeadBytes.
uint8_t* WritePairsHead(size_t num_bytes, const PairsHead& head, uint8_t* to);

// Frame whose sizes were all checked, but whose coded pairs were not.
struct PairsFrameView {
  PairsHead head;
  absl::Span<const uint8_t> uncoded, large;
  Frequencies table;
  std::vector<absl::Span<const uint8_t>> parts;  // rANS states and words of each part
};

// Reads what follows the form in the frame of a string of `num_bytes` bytes. InvalidArgument names
// what is wrong.
Error ViewPairsFrame(absl::Span<const uint8_t> behind_form, size_t num_bytes, PairsFrameView* view);

}  // namespace thinwire
