// Ctrl-C, SIGTERM and a lost terminal: the first asks the run to end, the second ends the process
// at once.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace thinwire {

// One per process, made by main before any other thread starts: those inherit that SIGINT, SIGTERM
// and SIGHUP are blocked, and only the thread of this object takes them. SIGHUP is left alone where
// it is ignored (nohup), and is no second signal: a terminal's end is often told twice.
class Interruption {
 public:
  Interruption();
  ~Interruption();

  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Readable from the first signal on.
  int fd() const { return seen_fd_; }
  bool seen() const;

  // `callback` is called once, on this object's thread, or at once when a signal has already come;
  // an empty one tells nobody. From the return on, the function that was set before is not called.
  void OnFirst(std::function<void()> callback);

 private:
  void Listen();

  int signal_fd_, seen_fd_, stop_fd_;
  mutable absl::Mutex mutex_;
  bool seen_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> callback_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace thinwire
