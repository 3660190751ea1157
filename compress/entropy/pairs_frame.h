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

// Writer of one string as such a frame. A thread has one at a time, because its data lie in memory
// of that thread.
class PairsFrameWriter {
 public:
  // Plans the frame. `codes` says which of `bytes` are codes. `bytes` outlive the writer.
  PairsFrameWriter(absl::Span<const uint8_t> bytes, const CodesPlace& codes);

  double expected_bytes() const { return plan_.frame_bytes; }
  // Returns how often each code occurs.
  Frequencies CountsOfCodes() const;

  // Returns the frame, in memory of this thread.
  absl::Span<const uint8_t> Write() const;

 private:
  const absl::Span<const uint8_t> bytes_;
  PairsHead head_;
  absl::Span<const uint8_t> rows_;   // the pairs, in whole rows
  absl::Span<const uint8_t> large_;  // the large codes
  Frequencies counts_;               // histogram of rows_
  PairsPlan plan_;
};

// Returns false if a sample of the codes shows that their frame in pairs is not among the shortest.
bool MayPayInPairs(absl::Span<const uint8_t> codes);

// Decodes what follows the form in a frame into `bytes`, whose length the frame gave.
// InvalidArgument unless the frame is valid.
absl::Status ReadPairsFrame(absl::Span<const uint8_t> behind_form, absl::Span<uint8_t> bytes);

}  // namespace thinwire
