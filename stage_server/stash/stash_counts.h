// Counts of what a stage's stash has put away.
#pragma once

#include <cstdint>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "base/stopwatch.h"
#include "stage_server/boundary/statistics.h"

namespace thinwire {

// Name of the stash where reports name cuts, and of its seconds where they name activities.
inline constexpr char kStash[] = "stash";

// Thread-safe.
class StashCounts {
 public:
  // Adds what was encoded of one block. A tensor counts as a message; its wire is the memory.
  void AddEncoding(const BoundaryStatistics::Traffic& encoded, const Stopwatch::Reading& took);
  // Adds the loss of one tensor.
  void AddError(const MeasuredError& error);
  // Adds what it took to make the tensors of one block again.
  void AddDecoding(const Stopwatch::Reading& took);

  // Returns a copy of all counts.
  BoundaryStatistics all() const;

 private:
  mutable std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  BoundaryStatistics all_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
