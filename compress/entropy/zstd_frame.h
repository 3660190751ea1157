// zstd on whole byte strings, with memory that each thread keeps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace thinwire {

// `bytes` as one zstd frame at level 1, in this thread's memory until its next call; empty if the
// frame would not be shorter. Equal bytes give equal frames. ResourceExhausted without memory.
absl::StatusOr<absl::Span<const uint8_t>> ZstdFrame(absl::Span<const uint8_t> bytes);

// What one frame holds, in this thread's memory until its next call. InvalidArgument unless `frame`
// is exactly one valid frame of at most `most` bytes; whatever it says, no more memory than `most`
// is taken.
absl::StatusOr<absl::Span<const uint8_t>> ReadZstdFrame(absl::Span<const uint8_t> frame,
                                                        size_t most);

}  // namespace thinwire
