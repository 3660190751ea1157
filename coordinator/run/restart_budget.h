// How often a run may go on by itself.
#pragma once

#include <algorithm>
#include <deque>

#include "absl/time/time.h"
#include "base/steady_time.h"
#include "proto/experiment.pb.h"

namespace thinwire {

class RestartBudget {
 public:
  // Of a resolved experiment.
  explicit RestartBudget(const RestartsConfig& config)
      : max_(config.max()), window_(absl::Seconds(config.window())) {}

  // Whether there may be one now: no more than `max` within `window`. It counts if so.
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
