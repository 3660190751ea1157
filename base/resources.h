// Resources that the system lets this process have.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace thinwire {

// Number of files, sockets and pipes that this process may have open at once.

// Raises the limit (`ulimit -n`) as far as the process may and returns it. FailedPrecondition, with
// both numbers, if it is less than `least`.
absl::StatusOr<uint64_t> RaiseDescriptorLimit(uint64_t least);

// Memory that this process can still allocate.

// Returns the bytes that are available without swapping: the kernel's estimate for the machine, or
// what the limits of the process's control groups leave, whichever is less. `root` is the folder
// that holds proc/ and sys/fs/cgroup/; tests use another than the system's. Returns the largest
// number if nothing tells.
uint64_t AvailableMemoryBytes(const std::string& root = "");

// Returns the bytes of memory that this process holds and that are no file's; 0 if nothing tells.
// `root` likewise.
uint64_t ResidentBytes(const std::string& root = "");

}  // namespace thinwire
