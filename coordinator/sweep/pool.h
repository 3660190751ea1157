// A pool of child processes, which run at once and cannot outlive this process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace thinwire {

// End of a child.
struct PoolEnd {
  size_t slot = 0;
  int wait_status = 0;  // as waitpid returns it
};

// For one thread; the kernel kills the children when that thread ends.
class Pool {
 public:
  explicit Pool(size_t slots) : children_(slots) {}
  // Kills the children that still run, and waits for them.
  ~Pool();

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  size_t slots() const { return children_.size(); }
  bool IsFree(size_t slot) const { return children_[slot] == 0; }
  bool idle() const;

  // Starts arguments[0] in a free slot. Its output is appended to the file `log`; its input is
  // empty.
  absl::Status Start(size_t slot, const std::string& name,
                     const std::vector<std::string>& arguments, const std::string& log);

  // Sends a signal to the child in a slot that is not free.
  void Signal(size_t slot, int signal);

  // Returns a child that has ended. Waits until one ends, `patience` is over or the descriptor
  // `interrupted` is readable; returns nothing in the latter cases.
  std::optional<PoolEnd> Wait(absl::Duration patience, int interrupted);

  // Sends SIGTERM to all children and waits until they have ended.
  std::vector<PoolEnd> EndAll();

 private:
  std::vector<pid_t> children_;  // by slot; 0: free
};

}  // namespace thinwire
