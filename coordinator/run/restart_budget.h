// Limit on the restarts of a run.
#pragma once

#include <deque>

#include "absl/time/time.h"
#include "base/steady_time.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Counts restarts within a sliding window.
class RestartBudget {
 public:
  // Takes the limit of a resolved experiment.
  explicit RestartBudget(const RestartsConfig& config)
      : max_(config.max()), window_(absl::Seconds(config.window())) {}

  // Returns whether a restart is allowed now: at most `max` within `window`. An allowed one is
  // counted.
  bool Allow(SteadyTime now) {
    while (!times_.empty() && now - times_.front() > window_) times_.pop_front();
    if (times_.size() >= max_) return false;
    times_.push_back(now);
    return true;
  }

 private:
  const size_t max_;
  const absl::Duration window_;
  std::deque<SteadyTime> times_;
};

}  // namespace thinwire
