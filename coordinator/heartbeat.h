// Keeps the lease of one stage alive and notices when the stage has gone silent.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "coordinator/failure.h"
#include "coordinator/stage_client.h"

namespace thinwire {

struct HeartbeatOptions {
  absl::Duration interval = absl::Seconds(1);
  absl::Duration silence = absl::Seconds(10);  // without an answer: the stage has failed
};

// A thread that renews the lease. Reports at most one failure, on that thread: kSilent, "stage 2
// (127.0.0.1:4711) has not answered for 10 s", or kError when the stage answers that the lease is
// not ours any more.
class Heartbeat {
 public:
  using OnFailure = std::function<void(Failure)>;

  // `client` outlives this object.
  Heartbeat(StageClient* client, const HeartbeatOptions& options, OnFailure on_failure);
  // Ends a renewal in flight; the client renews no more.
  ~Heartbeat();

  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void Run();
  bool WaitForStop(absl::Duration timeout);

  StageClient* const client_;
  const HeartbeatOptions options_;
  const OnFailure on_failure_;
  absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace thinwire
