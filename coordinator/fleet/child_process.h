// A child of this process that cannot outlive it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

struct ChildOptions {
  std::string name;                    // for messages: "stage 2"
  std::vector<std::string> arguments;  // the first is the path of the binary
  int threads = 1;                     // of its OpenMP
  std::string log;                     // path of the file that takes its output
  std::vector<int> inherited_fds;      // descriptors that stay open in it, besides 0, 1 and 2
};

// Starts a child in a process group of its own, so that the terminal's Ctrl-C reaches this process
// alone, without the signal dispositions of this process. The kernel kills it with the thread that
// calls this. A binary that cannot be executed ends the child, with a line in its log.
absl::StatusOr<pid_t> StartChild(const ChildOptions& options);

// "was killed by signal 9 (Killed)", "exited with code 1", from a wait status.
std::string HowItEnded(int wait_status);

// The last lines that are not blank, at most `count`, of the last 8 KiB of the file; none if it
// cannot be read.
std::vector<std::string> LastLines(const std::string& path, int count);

}  // namespace thinwire
