// Times of layers on a device that is behind the thread that submits them. Nobody waits for them:
// they are there when the device is done, once a step.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "nn/ops.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/boundary/step_trace.h"

namespace thinwire {

// Where the device's calls end with their work, the host's clock. One thread.
class DeviceClock {
 public:
  // `ops` outlive the clock.
  explicit DeviceClock(Ops* ops) : ops_(ops) {}

  // Times what its thread submits while it lives; a ComputeTimer otherwise, whose slice is what the
  // thread took: in a traced step it waits for the device. *seconds outlives the next Settle or
  // Forget.
  class Timer {
   public:
    Timer(DeviceClock* clock, double* seconds, double* core_wait, const PlannedSlice& slice);
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    DeviceClock* const clock_;
    double* const seconds_;
    std::unique_ptr<WorkTimer> on_device_;  // null: the host's clock counts
    double of_host_ = 0;                    // counts for nothing
    const ComputeTimer on_host_;
  };

  // Adds all that was timed to its *seconds, after a Finish of the device. Returns the first error
  // of the device's timers.
  absl::Status Settle();
  // Drops what was timed and not settled.
  void Forget();

 private:
  struct Timed {
    std::unique_ptr<WorkTimer> timer;
    double* seconds;
  };

  std::unique_ptr<WorkTimer> Start();
  void Note(const Error& error);

  Ops* const ops_;
  std::vector<std::unique_ptr<WorkTimer>> idle_;
  std::vector<Timed> timed_;
  Error error_;  // the first
};

}  // namespace thinwire
