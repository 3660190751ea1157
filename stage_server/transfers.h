// The waits of a run's calls for their clients, and for other servers, which may have gone silent:
// the end of the run ends them. Any thread.
#pragma once

#include <functional>
#include <mutex>
#include <set>

#include "absl/base/thread_annotations.h"

namespace thinwire {

class Transfers {
 public:
  // Returns what `transfer` does, a read or write that may take as long as the client likes. False
  // without calling it after End, which calls `cancel` while it lasts.
  bool Make(const std::function<bool()>& transfer, const std::function<void()>& cancel) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ended_) return false;
      cancels_.insert(&cancel);
    }
    const bool is_made = transfer();
    const std::lock_guard<std::mutex> lock(mutex_);
    cancels_.erase(&cancel);
    return is_made;
  }

  // Returns whether End was called.
  bool ended() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ended_;
  }

  void End() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    for (const std::function<void()>* cancel : cancels_) (*cancel)();
  }

 private:
  mutable std::mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<const std::function<void()>*> cancels_ ABSL_GUARDED_BY(mutex_);  // of those under way
};

}  // namespace thinwire
