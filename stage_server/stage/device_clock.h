// Measures layers on a device that runs behind the thread that submits its work. Nobody waits for
// the times: they are collected once a step, when the device is done.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/stopwatch.h"
#include "nn/ops.h"
#include "stage_server/boundary/step_trace.h"

namespace thinwire {

// Measures with the device's timers, or with the host's clock if the device finishes work within
// each call. Not thread-safe.
class DeviceClock {
 public:
  // `ops` outlives the clock.
  explicit DeviceClock(Ops* ops) : ops_(ops) {}

  // Times what its thread submits during its lifetime, or without a device timer the thread's own
  // work. Waits for a core are added to *core_wait and are no part of the thread's seconds. Its
  // slice shows the time on the thread, which in a traced step waits for the device. *seconds must
  // outlive the next Settle or Forget.
  class Timer {
   public:
    Timer(DeviceClock* clock, double* seconds, double* core_wait, const PlannedSlice& slice)
        : clock_(clock),
          seconds_(seconds),
          core_wait_(core_wait),
          slice_(slice),
          on_device_(clock->Start()) {}
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    DeviceClock* const clock_;
    double* const seconds_;
    double* const core_wait_;
    PlannedSlice slice_;
    std::unique_ptr<WorkTimer> on_device_;  // null: the host's clock counts
    const Stopwatch on_host_;
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
