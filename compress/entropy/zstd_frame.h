// zstd on whole byte strings, with memory that each thread keeps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace thinwire {

// Returns `bytes` as one zstd frame at level 1, in memory of this thread that is valid until its
// next call; empty if the frame would not be shorter. Equal bytes give equal frames.
// ResourceExhausted if there is no memory.
absl::StatusOr<absl::Span<const uint8_t>> ZstdFrame(absl::Span<const uint8_t> bytes);

// Returns the string that a frame holds, in memory of this thread that is valid until its next
// call. InvalidArgument unless `frame` is exactly one valid frame of at most `most` bytes. It takes
// no more memory than `most` bytes, whatever the frame says.
absl::StatusOr<absl::Span<const uint8_t>> ReadZstdFrame(absl::Span<const uint8_t> frame,
                                                        size_t most);

}  // namespace thinwire
