// Patience of a stage that waits for its neighbours. A slow run is not a dead one, so a wait ends
// only when the whole run has stood still for longer than its steps have taken so far. The run
// stands still while no stage of it computes or receives anything.
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

// One object per run and stage. Thread-safe.
class Patience {
 public:
  // After kFewSteps steps the limit is median + kDeviations * MAD of the durations of the last
  // kWindow steps. MAD is the median absolute deviation from the median.
  static constexpr size_t kFewSteps = 8, kWindow = 64;
  static constexpr double kDeviations = 10;

  // Makes an object whose limit never falls below `least`.
  explicit Patience(absl::Duration least = absl::Seconds(60)) : limit_(least), least_(least) {}

  // Counts that this stage has done an action of its schedule or has received a frame.
  void Advance() { ++advances_; }
  uint64_t advances() const { return advances_; }

  // Takes note of `advances`, the sum of advances() over all stages of the run. Only a change of
  // the number counts as an advance.
  void RunAdvanced(uint64_t advances, SteadyTime now);

  // Adds the duration of one step to those that the limit is computed from.
  void StepTook(absl::Duration step);

  // Returns how long the run may stand still.
  absl::Duration limit() const;

  // Returns when a wait that begins now ends unless the run advances.
  SteadyTime Deadline() const { return SteadyTime::Now() + limit(); }

  // Moves *deadline to limit() after the run's last advance. Returns false, and changes nothing, if
  // that time has passed or the run was never seen to advance.
  bool Extend(SteadyTime now, SteadyTime* deadline) const;

 private:
  std::atomic<uint64_t> advances_{0};

  mutable std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  std::deque<absl::Duration> steps_ ABSL_GUARDED_BY(mutex_);  // durations of the last steps
  absl::Duration limit_ ABSL_GUARDED_BY(mutex_);
  uint64_t run_advances_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<SteadyTime> last_advance_ ABSL_GUARDED_BY(mutex_);  // empty: the run never advanced
  const absl::Duration least_;
};

}  // namespace thinwire
