// Counts of what the replicas of a stage exchange: of their contributions and of the sums, each
// where it is encoded.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/stopwatch.h"
#include "proto/boundary.pb.h"
#include "stage_server/boundary/statistics.h"
#include "wire/message.h"
#include "wire/message_kind.h"

namespace thinwire {

// Any thread. The phases are those of an exchange.
class ExchangeCounts {
 public:
  // Makes counts of frames with that run and generation, whose bytes are counted.
  ExchangeCounts(uint64_t run, uint64_t generation) : run_(run), generation_(generation) {}

  // Add what a codec took for a message; `level` is its codec's, where that may change.
  void AddEncoding(Phase phase, const Stopwatch::Reading& took, std::optional<double> level);
  void AddDecoding(Phase phase, const Stopwatch::Reading& took);
  // Numbers that are counted of a message besides its bytes.
  struct Counted {
    int receivers = 0;     // machines to which it goes
    int64_t elements = 0;  // of what it stands for
    std::optional<double> level = {};
    std::optional<MeasuredError> error = {};
  };
  // Adds a message, in its step too, and its loss where that was measured.
  void AddMessage(const Message& message, const Counted& counted);

  // Returns the counts of all messages of a phase.
  BoundaryStatistics Of(Phase phase) const;
  // Removes and returns, in order, the counts of steps up to `last` that were not taken before.
  std::vector<StepStatistics> TakeSteps(Phase phase, uint64_t last);

 private:
  struct Counts {
    BoundaryStatistics all;
    StepCounts steps;
  };
  Counts& CountsOf(Phase phase) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return IsOfSum(phase) ? average_ : contributions_;
  }

  const uint64_t run_, generation_;
  mutable std::mutex mutex_;
  Counts contributions_ ABSL_GUARDED_BY(mutex_), average_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
