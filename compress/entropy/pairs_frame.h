// Frames of the entropy coder whose codes are coded two at a time, in parts that can be decoded at
// once (pairs_layout.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compress/entropy/codes_place.h"
#include "compress/entropy/pairs_layout.h"
#include "compress/entropy/rans.h"

namespace thinwire {

// One string on its way into such a frame. A thread has one at a time: what it makes is in that
// thread's memory.
class PairsFrameWriter {
 public:
  // `codes`: some of `bytes`, which outlive this.
  PairsFrameWriter(absl::Span<const uint8_t> bytes, const CodesPlace& codes);

  double expected_bytes() const { return plan_.frame_bytes; }
  // How often each code is there.
  Frequencies CountsOfCodes() const;

  absl::Span<const uint8_t> Write() const;

 private:
  const absl::Span<const uint8_t> bytes_;
  PairsHead head_;
  absl::Span<const uint8_t> rows_;   // the codes two at a time, in whole rows
  absl::Span<const uint8_t> large_;  // those that are
  Frequencies counts_;               // of rows_
  PairsPlan plan_;
};

// False if it is known by a part of the codes that no such frame of them is among the shortest.
bool MayPayInPairs(absl::Span<const uint8_t> codes);

// What the frame holds behind its form, of as many bytes as `bytes` has. InvalidArgument unless it
// is valid.
absl::Status ReadPairsFrame(absl::Span<const uint8_t> behind_form, absl::Span<uint8_t> bytes);

}  // namespace thinwire
