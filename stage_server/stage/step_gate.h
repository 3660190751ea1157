// Ends training in good order: between the same two optimizer steps at every stage.
//
// At any moment, stages may be at different steps. So each is held first, which tells the step it
// has begun. Then all are released to run to the latest of those steps, and training ends there.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "absl/base/thread_annotations.h"

namespace thinwire {

class StepGate {
 public:
  // Waits while the gate is held. Returns false if training ends before step `step`. Called before
  // the step, on the thread that trains.
  bool Enter(uint64_t step);

  // Holds the gate, so that no step begins. Returns the last step that has begun, or 0. Any thread.
  uint64_t Hold();
  // Lets training run to the end of step `last_step`. Returns false if a later one has begun.
  bool EndAfter(uint64_t last_step);
  // Makes Enter return true at once from now on, for training that ends for another reason.
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
