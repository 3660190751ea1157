// Renewal of one stage's lease, and detection of a stage that has gone silent.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "coordinator/fleet/failure.h"
#include "coordinator/fleet/stage_client.h"

namespace thinwire {

// Timing of a heartbeat.
struct HeartbeatOptions {
  absl::Duration interval = absl::Seconds(1);
  // Without an answer for this long the stage has failed.
  absl::Duration silence = absl::Seconds(10);
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

  // `advances` counts the progress of all stages of the run (RenewRequest); this object adds that
  // of its stage. `client` and `advances` must outlive it.
  Heartbeat(StageClient* client, const HeartbeatOptions& options, std::atomic<uint64_t>* advances,
            OnFailure on_failure);
  // Cancels a renewal in flight; the client renews no more.
  ~Heartbeat();

  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void Loop();
  bool WaitForStop(absl::Duration timeout);

  // Adds how far the stage has advanced since its last answer.
  void Count(uint64_t advances);

  StageClient* const client_;
  const HeartbeatOptions options_;
  std::atomic<uint64_t>* const advances_;  // of all stages
  const OnFailure on_failure_;
  uint64_t last_advances_ = 0;  // of this stage; only the thread uses it and `told_end_`
  bool told_end_ = false;
  // A standard mutex, as stopping_ is waited for with a deadline (see SteadyTime::chrono).
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace thinwire
