// The first error of several threads that have nobody to return it to at once.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace thinwire {

// The error. Thread-safe.
class FirstError {
 public:
  // Keeps `status` if it is the first error.
  void Update(const absl::Status& status) {
    if (status.ok()) return;
    const absl::MutexLock lock(&mutex_);
    first_.Update(status);
  }
  // Returns the first error; OK if there was none.
  absl::Status Get() const {
    const absl::MutexLock lock(&mutex_);
    return first_;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::Status first_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
