// The answers of all stages of a run, taken together.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"

namespace thinwire {

// Answers of stages, and how far they say that they have advanced. Any thread.
class Pulse {
 public:
  // Adds an answer: its stage has advanced by so much (RenewRequest) since the answer before it.
  void Add(uint64_t advances, SteadyTime now);

  // Returns the sum of all that was added.
  uint64_t advances() const;

  // Begins and ends time in which stages train, and so advance.
  void set_trains(bool trains);

  // Returns whether any stage has answered within the `time` before `now`.
  bool Answers(SteadyTime now, absl::Duration time) const;
  // Returns when stages that train stand still, unless one advances before: when none has advanced
  // for `time` and for three times the longest pause of late between two advances. Never if none
  // trains, or none has advanced yet.
  SteadyTime StandStill(absl::Duration time) const;
  // Returns whether they stand still now.
  bool StandsStill(SteadyTime now, absl::Duration time) const { return now >= StandStill(time); }
  // Returns whether a stage has advanced after `moment`.
  bool HasAdvancedSince(SteadyTime moment) const;

 private:
  mutable absl::Mutex mutex_;
  uint64_t advances_ ABSL_GUARDED_BY(mutex_) = 0;
  SteadyTime advanced_ ABSL_GUARDED_BY(mutex_);
  SteadyTime answered_ ABSL_GUARDED_BY(mutex_);
  bool trains_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_advanced_ ABSL_GUARDED_BY(mutex_) = false;  // since it trains
  // Between two advances; each shorter one forgets 3 % of it.
  absl::Duration longest_pause_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
