// Messages to the user about stages that have not come yet, while they are waited for.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/steady_time.h"

namespace thinwire {

// Thread-safe.
class Arrivals {
 public:
  using Say = std::function<void(const std::string&)>;

  // `say` gets a line after 3 s and then every 10 s while a stage is missing; it may be null.
  Arrivals(int stages, Say say, std::function<SteadyTime()> now = &SteadyTime::Now);

  // Notes that stage `i`, called `name`, is not there yet, for the `reason` that gRPC gives.
  void Missing(int i, const std::string& name, const std::string& reason);
  void Arrived(int i);

 private:
  std::string Text() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int stages_;
  const Say say_;
  const std::function<SteadyTime()> now_;
  absl::Mutex mutex_;
  SteadyTime next_ ABSL_GUARDED_BY(mutex_);
  std::map<int, std::string> missing_ ABSL_GUARDED_BY(mutex_);  // "NAME: REASON", by stage
};

}  // namespace thinwire
