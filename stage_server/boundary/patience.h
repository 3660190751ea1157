// How long a stage waits for its neighbours. A slow run is not a dead one: a wait ends only when
// the whole run has stood still, no stage of it computing or receiving anything, for longer than
// its steps have taken so far.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/steady_time.h"

namespace thinwire {

// One per run and stage. Any thread.
class Patience {
 public:
  // From this many steps on their seconds count: median + kDeviations * MAD of the last kWindow,
  // MAD being the median of what they differ from their median by.
  static constexpr size_t kFewSteps = 8, kWindow = 64;
  static constexpr double kDeviations = 10;

  // `least`: the limit where steps take less.
  explicit Patience(absl::Duration least = absl::Seconds(60)) : limit_(least), least_(least) {}

  // This stage has done an action of its schedule, or has received a frame.
  void Advance() { ++advances_; }
  uint64_t advances() const { return advances_; }

  // How often the stages of the run have advanced, all together. Only that it changes counts.
  void RunAdvanced(uint64_t advances, SteadyTime now);

  void StepTook(absl::Duration step);

  // How long the run may stand still.
  absl::Duration limit() const;

  // When a wait that begins now ends unless the run advances.
  SteadyTime Deadline() const { return SteadyTime::Now() + limit(); }

  // Moves the deadline to where the run will have stood still for limit(). False, and nothing is
  // moved, if that is over.
  bool Extend(SteadyTime now, SteadyTime* deadline) const;

 private:
  std::atomic<uint64_t> advances_{0};

  mutable std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  std::deque<absl::Duration> steps_ ABSL_GUARDED_BY(mutex_);  // the last ones
  absl::Duration limit_ ABSL_GUARDED_BY(mutex_);
  uint64_t run_advances_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<SteadyTime> last_advance_ ABSL_GUARDED_BY(mutex_);  // empty: never told
  const absl::Duration least_;
};

}  // namespace thinwire
