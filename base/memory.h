// Memory that this process can still allocate.
#pragma once

#include <cstdint>
#include <string>

namespace thinwire {

// Returns the bytes that are available without swapping: the kernel's estimate for the machine, or
// what the limits of the process's control groups leave, whichever is less. `root` is the folder
// that holds proc/ and sys/fs/cgroup/; tests use another than the system's. Returns the largest
// number if nothing tells.
uint64_t AvailableMemoryBytes(const std::string& root = "");

}  // namespace thinwire
