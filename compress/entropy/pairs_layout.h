// Frames whose codes are coded two at a time: what stands where, and what they take. Their form is
// in docs/compression.md; pairs_frame.h makes and reads them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "compress/entropy/pairs.h"
#include "compress/entropy/rans.h"
#include "compress/entropy/stretches.h"
#include "tensor/error.h"

namespace thinwire {

constexpr uint8_t kPairsForm = 16;  // stands where other frames have their number of neighbours

// The number of bytes, the form, and what PairsHead says.
constexpr size_t kPairsHeadBytes = 19;
constexpr size_t kPartLengthBytes = 4;

struct PairsHead {
  size_t begin = 0, count = 0;  // of the codes
  size_t num_large = 0, num_parts = 1;

  size_t num_rows() const { return NumRows(NumPairs(count)); }
  // The first byte of a part's rows, among all of them.
  size_t part_begin(size_t part) const { return part * num_rows() / num_parts * kStates; }
  size_t longest_part() const { return (num_rows() / num_parts + 1) * kStates; }
};

// First about kPairLooks codes are sampled, evenly. If more than kMostLargeLooks of these are
// large, pairs do not pay.
constexpr size_t kPairLooks = 4096, kMostLargeLooks = kPairLooks / 4;
constexpr size_t PairLookStride(size_t codes) { return codes / kPairLooks + 1; }
constexpr bool MayPayInPairs(size_t codes, size_t large_looks) {
  return codes <= kPairLooks || large_looks <= kMostLargeLooks;
}

// How many parts the encoder makes of so many rows.
size_t NumPartsOf(size_t rows);

// The table of pairs of which there are so many, and how many bytes a frame of `num_bytes` is
// expected to take with it.
struct PairsPlan {
  Frequencies table;
  double frame_bytes;
};
PairsPlan PlanPairs(size_t num_bytes, const PairsHead& head, const Frequencies& pairs);

// How often each code is there. `large`: how often each large one.
Frequencies CodesOfPairs(const PairsHead& head, const Frequencies& pairs, const Frequencies& large);

// Returns the end, kPairsHeadBytes further.
uint8_t* WritePairsHead(size_t num_bytes, const PairsHead& head, uint8_t* to);

// A frame whose every size was checked, but none of what is coded.
struct PairsFrameView {
  PairsHead head;
  absl::Span<const uint8_t> uncoded, large;
  Frequencies table;
  absl::Span<const uint8_t> lengths;  // kPartLengthBytes of each part
  absl::Span<const uint8_t> parts;

  size_t length(size_t part) const;
};

// Of what stands behind the form of a frame of so many bytes. InvalidArgument names what is wrong.
Error ViewPairsFrame(absl::Span<const uint8_t> behind_form, size_t num_bytes, PairsFrameView* view);

}  // namespace thinwire
