// Number of files, sockets and pipes that this process may have open at once.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace thinwire {

// Raises the limit (`ulimit -n`) as far as the process may and returns it. FailedPrecondition, with
// both numbers, if it is less than `least`.
absl::StatusOr<uint64_t> RaiseDescriptorLimit(uint64_t least);

}  // namespace thinwire
