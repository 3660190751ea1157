// Where training can be ended in order: between two optimizer steps, the same two at every stage.
//
// Stages are not at the same step at the same moment. So each is first held, which tells the step
// that it has begun; then all are let go on to the latest of those, which ends their training.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "absl/base/thread_annotations.h"

namespace thinwire {

class StepGate {
 public:
  // On the thread that trains, before step `step`. False: training ends before it. Waits while the
  // gate is held.
  bool Enter(uint64_t step);

  // Any thread. No step begins any more; returns the last one that has begun, 0 without any.
  uint64_t Hold();
  // Training goes on to the end of step `last_step`. False: a later one has begun.
  bool EndAfter(uint64_t last_step);
  // Enter returns true at once from now on: the training ends for another reason.
  void Open();

 private:
  std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  std::condition_variable changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<uint64_t> last_step_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
