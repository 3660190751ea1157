// Measures layers on a device that runs behind the thread that submits its work. Nobody waits for
// the times: they are collected once a step, when the device is done.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "nn/ops.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/boundary/step_trace.h"

namespace thinwire {

// Measures with the device's timers, or with the host's clock if the device finishes work within
// each call. Not thread-safe.
class DeviceClock {
 public:
  // `ops` outlives the clock.
  explicit DeviceClock(Ops* ops) : ops_(ops) {}

  // Times what its thread submits during its lifetime; without a device timer it is a ComputeTimer.
  // Its slice shows the time on the thread, which in a traced step waits for the device. *seconds
  // must outlive the next Settle or Forget.
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
    double of_host_ = 0;                    // host seconds that are not wanted
    const ComputeTimer on_host_;
  };

  // Adds everything timed to its *seconds, after a Finish of the device. Returns the first error of
  // the device's timers.
  absl::Status Settle();
  // Drops what was timed but not settled.
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
  Error error_;  // the first one
};

}  // namespace thinwire
