// Frames of the entropy coder whose codes are coded two at a time, in parts that can be decoded at
// once (pairs_layout.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compress/codes_place.h"

namespace thinwire {

// `bytes` as one such frame, in this thread's memory until its next call; empty if it does not pay
// (TableOfPairs) or if there are no codes.
absl::Span<const uint8_t> PairsFrame(absl::Span<const uint8_t> bytes, const CodesPlace& codes);

// What the frame holds behind its form, of as many bytes as `bytes` has. InvalidArgument unless it
// is valid.
absl::Status ReadPairsFrame(absl::Span<const uint8_t> behind_form, absl::Span<uint8_t> bytes);

}  // namespace thinwire
