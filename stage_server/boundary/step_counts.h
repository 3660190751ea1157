// Counts of a sender in single steps of training, until somebody takes them.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "stage_server/boundary/statistics.h"

namespace thinwire {

// Not thread-safe.
class StepCounts {
 public:
  // Returns the counts of `step`, which is the last step that was asked for, or a new one.
  StepStatistics& At(uint64_t step);
  // Removes and returns, in order, the counts of steps up to `last` that were not taken before.
  std::vector<StepStatistics> Take(uint64_t last);

 private:
  std::deque<StepStatistics> steps_;
};

}  // namespace thinwire
