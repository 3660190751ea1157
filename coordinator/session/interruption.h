// Ctrl-C, SIGTERM and a lost terminal: the first signal asks the run to end, the second ends the
// process at once.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace thinwire {

// One per process, made by main before any other thread starts. Later threads inherit that SIGINT,
// SIGTERM and SIGHUP are blocked; only the thread of this object receives them. SIGHUP stays
// ignored if it was ignored (nohup). It never counts as the second signal, as the end of a terminal
// is often signalled twice.
class Interruption {
 public:
  Interruption();
  ~Interruption();

  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Returns a descriptor that is readable from the first signal on.
  int fd() const { return seen_fd_; }
  bool seen() const;

  // Sets `callback`, which is called once on this object's thread, or at once if a signal has
  // already come. An empty one calls nothing. Once it has returned, the previous function is not
  // called any more.
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
