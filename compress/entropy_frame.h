// An entropy coder of byte strings: range asymmetric numeral systems (Duda, arXiv 1311.2540) with
// one table of frequencies per string and eight interleaved states (Giesen, arXiv 1402.3392). Its
// frames are in docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace thinwire {

// `bytes` as one frame, in this thread's memory until its next call; empty if the frame would not
// be shorter. Equal bytes give equal frames.
absl::Span<const uint8_t> EntropyFrame(absl::Span<const uint8_t> bytes);

// What one frame holds, in this thread's memory until its next call. InvalidArgument unless `frame`
// is exactly one valid frame of at most `most` bytes; whatever it says, no more memory than `most`
// is taken.
absl::StatusOr<absl::Span<const uint8_t>> ReadEntropyFrame(absl::Span<const uint8_t> frame,
                                                           size_t most);

}  // namespace thinwire
