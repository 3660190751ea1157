// An entropy coder of byte strings: frames of range asymmetric numeral systems, whose tables of
// frequencies they hold. Their form is in docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/entropy/codes_place.h"
#include "compress/entropy/form_choice.h"

namespace thinwire {

// `bytes` as one frame, in this thread's memory until its next call; empty if the frame would not
// be shorter. The codes, if there are any, have tables by the size of their neighbours where that
// saves anything. Equal bytes give equal frames.
absl::Span<const uint8_t> EntropyFrame(absl::Span<const uint8_t> bytes, const CodesPlace& codes);

// The frame of that form, whatever it takes, in the same memory; empty if there is none.
absl::Span<const uint8_t> EntropyFrameOfForm(EntropyForm form, absl::Span<const uint8_t> bytes,
                                             const CodesPlace& codes);

// What one frame holds, in this thread's memory until its next call. InvalidArgument unless `frame`
// is exactly one valid frame of at most `most` bytes; whatever it says, no more memory than `most`
// is taken.
absl::StatusOr<absl::Span<const uint8_t>> ReadEntropyFrame(absl::Span<const uint8_t> frame,
                                                           size_t most);

}  // namespace thinwire
