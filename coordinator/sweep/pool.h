// Several programs at once, each a child that cannot outlive this process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace thinwire {

struct PoolEnd {
  size_t slot = 0;
  int wait_status = 0;  // as waitpid has it
};

// On one thread, with whose end the kernel kills the children.
class Pool {
 public:
  explicit Pool(size_t slots) : children_(slots) {}
  // Kills and reaps what still runs.
  ~Pool();

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  size_t slots() const { return children_.size(); }
  bool IsFree(size_t slot) const { return children_[slot] == 0; }
  bool idle() const;

  // Starts arguments[0] in a free slot. Its output is appended to the file `log`; it reads nothing.
  absl::Status Start(size_t slot, const std::string& name,
                     const std::vector<std::string>& arguments, const std::string& log);

  // To the child in a slot that is not free.
  void Signal(size_t slot, int signal);

  // One that has ended, at once or until `patience` is over or `interrupted`, a descriptor, is
  // readable; none otherwise.
  std::optional<PoolEnd> Wait(absl::Duration patience, int interrupted);

  // Asks all that run to end (SIGTERM), and waits until they have.
  std::vector<PoolEnd> EndAll();

 private:
  std::vector<pid_t> children_;  // by slot; 0: free
};

}  // namespace thinwire
