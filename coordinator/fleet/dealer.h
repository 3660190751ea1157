// How a run's replicas are dealt to pipelines of unequal speed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "config/replicas_spec.h"

namespace thinwire {

// Returns how many replicas each pipeline carries, so that the slowest of them is done soonest; at
// least one each. `seconds` are those that a replica's part of a step takes, by pipeline.
Deal DealBySpeed(const std::vector<double>& seconds, int replicas);

// Measures the servers of a run while it trains. How fast each is stays known when its members
// change. Any thread.
class Dealer {
 public:
  // Least part of a step's time that another deal must save.
  static constexpr double kLeastGain = 0.05;

  explicit Dealer(int replicas) : replicas_(replicas) {}

  // Begins with these servers: all stages of the first pipeline, then those of the next, which have
  // so many replicas each.
  void Begin(std::vector<std::string> addresses, Deal deal);

  // Takes that a server, by its index, has computed for `busy` seconds in all up to the end of
  // `step`. Returns whether the run should be dealt anew: once it has been measured for a while and
  // a step would take at least kLeastGain less.
  bool Add(int server, uint64_t step, double busy, SteadyTime now);

  // Returns the number of replicas of each of these pipelines. It expects the mean of a server that
  // was not measured, and nearly equal numbers are best if none was.
  Deal BestFor(const std::vector<std::string>& addresses, int pipelines) const;

 private:
  struct Measured {
    uint64_t step = 0;
    double busy = 0;
    SteadyTime since;
  };

  // Returns the seconds of a replica at the slowest server of each pipeline.
  std::vector<double> SecondsOf(const std::vector<std::string>& addresses, int pipelines) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool IsWorthIt() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const int replicas_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> addresses_ ABSL_GUARDED_BY(mutex_);
  Deal deal_ ABSL_GUARDED_BY(mutex_);
  // By server: when it was first measured with this deal, and whether that has given a time.
  std::vector<std::optional<Measured>> first_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> is_measured_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, double> seconds_ ABSL_GUARDED_BY(mutex_);  // of a replica, by address
  SteadyTime earliest_ ABSL_GUARDED_BY(mutex_);                    // for the next deal
};

}  // namespace thinwire
