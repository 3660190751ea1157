// Keeps the lease of one stage alive and notices when the stage has gone silent.
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

struct HeartbeatOptions {
  absl::Duration interval = absl::Seconds(1);
  absl::Duration silence = absl::Seconds(10);  // without an answer: the stage has failed
  std::function<SteadyTime()> now = &SteadyTime::Now;
};

// A thread that renews the lease. Reports at most one failure, on that thread: kSilent, "stage 2
// (127.0.0.1:4711) has not answered for 10 s", or kUnleased when the stage answers that the lease
// is not ours any more; and goes on behind another report, kEnds, once the stage says that it is to
// end. Only time in which we were there to listen is silence: after a pause of this process the
// stage has all of it anew.
class Heartbeat {
 public:
  using OnFailure = std::function<void(Failure)>;

  // `client` and `advances`, those of the run's stages (RenewRequest), outlive this object, which
  // adds what this stage says.
  Heartbeat(StageClient* client, const HeartbeatOptions& options, std::atomic<uint64_t>* advances,
            OnFailure on_failure);
  // Ends a renewal in flight; the client renews no more.
  ~Heartbeat();

  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void Loop();
  bool WaitForStop(absl::Duration timeout);

  // Adds what the stage has advanced by since it was last heard.
  void Count(uint64_t advances);

  StageClient* const client_;
  const HeartbeatOptions options_;
  std::atomic<uint64_t>* const advances_;  // of all stages
  const OnFailure on_failure_;
  uint64_t last_advances_ = 0;  // of this stage; the thread's, as is the next
  bool told_end_ = false;
  // A standard mutex, as stopping_ is waited for with a deadline: see SteadyTime::chrono.
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace thinwire
