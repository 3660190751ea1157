// A child process that cannot outlive this process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// Program and environment of a child.
struct ChildOptions {
  std::string name;                    // for messages: "stage 2"
  std::vector<std::string> arguments;  // the first is the path of the binary
  int threads = 1;                     // of its OpenMP
  std::string log;                     // path of the file that receives its output
  std::vector<int> inherited_fds;      // descriptors that stay open in it, besides 0, 1 and 2
};

// Starts a child in a process group of its own, so that the terminal's Ctrl-C reaches this process
// alone, and with default signal dispositions. The kernel kills it when the calling thread ends. If
// the binary cannot be executed, the child ends, with a line in its log.
absl::StatusOr<pid_t> StartChild(const ChildOptions& options);

// Describes a wait status: "was killed by signal 9 (Killed)", "exited with code 1".
std::string HowItEnded(int wait_status);

// Returns the last lines that are not blank, at most `count`, from the last 8 KiB of the file; none
// if it cannot be read.
std::vector<std::string> LastLines(const std::string& path, int count);

}  // namespace thinwire
