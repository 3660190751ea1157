// How long servers take to answer: what tells one that is lost from one whose line is slow.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace thinwire {

// The slowest answers of late, by server. Any thread. After Hayashibara et al., "The φ accrual
// failure detector" (2004), a server's own past says how long its silence may last.
class AnswerTimes {
 public:
  // Adds the time that an answer took.
  void Add(const std::string& address, absl::Duration time);

  // Returns for how long the server may be silent: eight times its slowest answer, of which each
  // later answer forgets 3 %. At least 1 s; 10 s for a server that has answered nothing yet.
  absl::Duration Patience(const std::string& address) const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, absl::Duration> slowest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
