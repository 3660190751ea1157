// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace thinwire {

// Bytes that can be had without swapping: what the kernel estimates for the machine, or what the
// limits of the process's control groups leave, whichever is less. `root` holds proc/ and
// sys/fs/cgroup/, in tests another folder than the system's. The largest number where nothing says.
uint64_t AvailableMemoryBytes(const std::string& root = "");

}  // namespace thinwire
