// Renewal of one stage's lease, and detection of a stage that has gone silent.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "coordinator/fleet/answer_times.h"
#include "coordinator/fleet/failure.h"
#include "coordinator/fleet/pulse.h"
#include "coordinator/fleet/stage_client.h"

namespace thinwire {

// Timing of a heartbeat.
struct HeartbeatOptions {
  absl::Duration interval = absl::Seconds(1);
  // Without an answer for this long the stage has failed.
  absl::Duration silence = absl::Seconds(10);
  // If not null: while the run trains a stage has failed after its Patience, too, if meanwhile
  // other stages answer but none advances. For runs that lose little with a stage that was only
  // slow. Outlives the heartbeat.
  AnswerTimes* answer_times = nullptr;
  std::function<SteadyTime()> now = &SteadyTime::Now;
};

// A thread that renews the lease. It reports at most one failure, on that thread, and then ends:
// kSilent, "stage 2 (127.0.0.1:4711) has not answered for 10 s", or kUnleased when the stage
// answers that the lease is no longer ours. It also reports kEnds once, when the stage says that it
// is to end, and continues. Silence counts only while this process listens: after a pause of this
// process the stage has the whole time again.
class Heartbeat {
 public:
  using OnFailure = std::function<void(Failure)>;

  // Adds the answers to `pulse`, which is that of the run. `client` and `pulse` must outlive it.
  Heartbeat(StageClient* client, const HeartbeatOptions& options, Pulse* pulse,
            OnFailure on_failure);
  // Cancels a renewal in flight; the client renews no more.
  ~Heartbeat();

  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void Loop();
  // Renews once, and counts its answer or its silence. Returns what ends the heartbeat.
  std::optional<Failure> Beat();
  bool WaitForStop(absl::Duration timeout);

  // Returns how long the stage may be silent while the run stands still.
  absl::Duration Patience() const;
  // Returns whether the run has stopped with the stage's last answer, or soon after.
  bool SeemsLost() const;
  // Returns how long the next renewal may take.
  absl::Duration Timeout() const;
  // Counts an answer that took `time`.
  void Count(const RenewResponse& answer, absl::Duration time);
  // Counts that there was none, `taken` after the renewal before, which took at most `most`.
  void CountSilence(absl::Duration taken, absl::Duration most);
  // Returns whether the stage has been silent for longer than it may.
  bool IsLost() const;

  StageClient* const client_;
  const HeartbeatOptions options_;
  const absl::Duration interval_;
  Pulse* const pulse_;
  const OnFailure on_failure_;
  // Only the thread uses these, down to `since_`.
  uint64_t last_advances_ = 0;  // of this stage
  bool told_end_ = false;
  absl::Duration silent_;  // without an answer; pauses of this process left out
  SteadyTime answered_;    // when the last answer came
  SteadyTime since_;       // when the last renewal ended
  // A standard mutex, as stopping_ is waited for with a deadline (see SteadyTime::chrono).
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace thinwire
