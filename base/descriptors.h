// How many files, sockets and pipes this process may have open at once.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace thinwire {

// Raises the limit (`ulimit -n`) as far as the system lets a process do that by itself, and returns
// it. FailedPrecondition naming both numbers where that is less than `least`.
absl::StatusOr<uint64_t> RaiseDescriptorLimit(uint64_t least);

}  // namespace thinwire
