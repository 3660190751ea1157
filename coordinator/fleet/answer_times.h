// How long servers take to answer: what tells one that is lost from one whose line is slow.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"

namespace thinwire {

// The slowest answers of late, by server. Any thread. After Hayashibara et al., "The φ accrual
// failure detector" (2004), a server's own past says how long its silence may last.
class AnswerTimes {
 public:
  // Adds an answer, which took that time and came now.
  void Add(const std::string& address, absl::Duration time, SteadyTime now);
  // Takes that a server is held for lost whose last answer came then. If the next one comes within
  // 10 s of it, that was a mistake, and the server's least patience doubles.
  void Lose(const std::string& address, SteadyTime answered);

  // Returns for how long the server may be silent: eight times its slowest answer, of which each
  // later answer forgets 3 %. At least 0.5 s; 10 s for a server that has answered nothing yet, and
  // at most.
  absl::Duration Patience(const std::string& address) const;

 private:
  struct Known {
    absl::Duration slowest, least;
    std::optional<SteadyTime> lost;  // when its last answer came
  };

  mutable absl::Mutex mutex_;
  std::map<std::string, Known> servers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
