// Entropy coder of byte strings. A frame holds a string coded by range asymmetric numeral systems
// (rANS), and the frequency tables for it. The format is in docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/entropy/codes_place.h"
#include "compress/entropy/form_choice.h"

namespace thinwire {

// Returns `bytes` as one frame, in memory of this thread that is valid until its next call; empty
// if the frame would not be shorter than `bytes`. `codes` says which bytes are codes, if any: they
// get tables by the size of their neighbours where that saves bytes. Equal bytes give equal frames.
absl::Span<const uint8_t> EntropyFrame(absl::Span<const uint8_t> bytes, const CodesPlace& codes);

// Returns the frame of form `form`, even if it is longer than `bytes`, in the same memory; empty if
// the string has no frame of that form.
absl::Span<const uint8_t> EntropyFrameOfForm(EntropyForm form, absl::Span<const uint8_t> bytes,
                                             const CodesPlace& codes);

// Returns the string that a frame holds, in memory of this thread that is valid until its next
// call. InvalidArgument unless `frame` is exactly one valid frame of at most `most` bytes. It takes
// memory of a small multiple of `most` bytes, whatever the frame says.
absl::StatusOr<absl::Span<const uint8_t>> ReadEntropyFrame(absl::Span<const uint8_t> frame,
                                                           size_t most);

}  // namespace thinwire
