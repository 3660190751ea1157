// How a run's replicas are dealt to pipelines of unequal speed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "config/replicas_spec.h"

namespace thinwire {

// A pipeline as replicas are dealt to it.
struct DealtTo {
  double seconds = 0;  // that a replica's part of a step takes there
  int most = 0;        // largest number of replicas; 0: any
};

// Returns how many replicas each pipeline carries, so that the slowest of them is done soonest; at
// least one each. What all together may not carry is dealt as if they might.
Deal DealBySpeed(const std::vector<DealtTo>& pipelines, int replicas);

// Measures the servers of a run while it trains. How fast each is at a stage stays known when its
// members change. Any thread.
class Dealer {
 public:
  // Least part of a step's time that another deal must save; and that servers must save that go to
  // another stage, as they fetch its state, and how fast they are there is not known before.
  static constexpr double kLeastGain = 0.05, kLeastGainOfMoves = 0.2;

  // `work` says in which proportion the stages of a pipeline have work.
  Dealer(int replicas, std::vector<double> work)
      : replicas_(replicas), stages_(work.size()), work_(std::move(work)) {}

  // Begins with these servers: all stages of the first pipeline, then those of the next, which have
  // so many replicas each.
  void Begin(std::vector<std::string> addresses, Deal deal);

  // Sets whether servers may go to another stage: all compute alike. It stays so that none may once
  // one could not take its place.
  void set_may_move(bool may_move);
  // Takes that a server cannot take the stage to which it was to go, if it was. Returns whether so.
  bool RefuseMove(int server);
  // Returns whether that was so since the last call: places are to be as they were before.
  bool TakeRefusal();

  // Takes that a server, by its index, has computed for `busy` seconds in all up to the end of
  // `step`. Returns whether the run should be dealt anew: once all have been measured for a while,
  // a step would take at least kLeastGain less, and the last deal has earned what it took.
  bool Add(int server, uint64_t step, double busy, SteadyTime now);

  // Takes that a server cannot carry as many replicas as it was dealt. Returns whether it will be
  // dealt fewer: not less than it would be without regard to speed.
  bool Limit(int server);

  // Returns whether these servers' pipelines can carry all replicas, as far as is known.
  bool CanCarry(const std::vector<std::string>& addresses) const;

  // Returns these servers in pipelines of like speed: the fastest server of each stage is in the
  // first one, and so on. As all of a stage have the same state, they may change places. They keep
  // theirs unless a step then takes at least kLeastGain less, as neighbours may be near each other.
  // With `moves` all have the state of their stage. Then, where kLeastGainOfMoves is left to gain,
  // the fastest make up the first pipeline, and so on. Some go to another stage for that, but not
  // all of any. The first stage and the last, which read data, exchange servers with each other
  // only, and so do those between them.
  std::vector<std::string> Placed(const std::vector<std::string>& addresses, bool moves);

  // Returns the number of replicas of each pipeline of these servers. From one that was measured at
  // another stage alone it expects what follows from the stages' work, from others the mean of the
  // stage. It deals nearly equal numbers if none was measured.
  Deal BestFor(const std::vector<std::string>& addresses) const;

 private:
  struct Measured {
    uint64_t step = 0;
    double busy = 0;
    SteadyTime since;
    int times = 0;  // how often it was measured with this deal
  };
  using Place = std::pair<std::string, size_t>;  // address and stage

  // Returns how fast each pipeline is, by its slowest server, and what it may carry.
  std::vector<DealtTo> PipelinesOf(const std::vector<std::string>& addresses) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  double SecondsOf(const Place& place) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Returns the time that a step's replicas take, dealt as is best.
  double StepOf(const std::vector<std::string>& addresses) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Returns the time that a server was measured to take, by the work of the stage, over all stages.
  std::optional<double> SlownessOf(const std::string& address) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::vector<std::string> PlacedHere(const std::vector<std::string>& own, bool moves) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Return the servers by their speed, each at its stage; or also at others. The latter is empty
  // where one was not measured, or a stage would be left to servers that lack its state.
  std::vector<std::string> ByStages(const std::vector<std::string>& own) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::vector<std::string> ByMoves(const std::vector<std::string>& own) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Lets the fastest of these stages' servers make up the first pipeline, and so on. Returns
  // whether each stage keeps a server, and all were measured.
  bool Exchange(const std::vector<size_t>& stages, const std::vector<std::string>& own,
                std::vector<std::string>* addresses) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool IsWorthIt() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const int replicas_;
  const size_t stages_;
  const std::vector<double> work_;  // by stage
  mutable absl::Mutex mutex_;
  bool may_move_ ABSL_GUARDED_BY(mutex_) = true;
  std::set<std::string> moved_ ABSL_GUARDED_BY(mutex_);  // by the last Placed
  bool is_refused_ ABSL_GUARDED_BY(mutex_) = false, tells_refusal_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> addresses_ ABSL_GUARDED_BY(mutex_);
  Deal deal_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::optional<Measured>> last_ ABSL_GUARDED_BY(mutex_);  // by server
  std::map<Place, double> seconds_ ABSL_GUARDED_BY(mutex_);            // of a replica
  std::map<std::string, int> limits_ ABSL_GUARDED_BY(mutex_);          // by address
  // When another deal was found to be better, until the run trains with it.
  std::optional<SteadyTime> decided_ ABSL_GUARDED_BY(mutex_);
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;  // since then
  SteadyTime earliest_ ABSL_GUARDED_BY(mutex_);     // for the next one
  SteadyTime looked_ ABSL_GUARDED_BY(mutex_);       // whether another one is better
};

}  // namespace thinwire
