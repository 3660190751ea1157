// All stages of a command: calls on all of them at once, and one reason if that fails.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/secret.h"
#include "base/steady_time.h"
#include "config/tensor_parts.h"
#include "coordinator/fleet/dealer.h"
#include "coordinator/fleet/failure.h"
#include "coordinator/fleet/heartbeat.h"
#include "coordinator/fleet/pipelines.h"
#include "coordinator/fleet/pulse.h"
#include "coordinator/fleet/stage_client.h"
#include "security/security.h"

namespace thinwire {

// Thread-safe.
class Arrivals {
 public:
  using Say = std::function<void(const std::string&)>;

  // `say` gets a line after 3 s and then every 10 s while a stage is missing; it may be null.
  Arrivals(int stages, Say say, std::function<SteadyTime()> now = &SteadyTime::Now);

  // Notes that stage `i`, called `name`, is not there yet, for the `reason` that gRPC gives.
  void Missing(int i, const std::string& name, const std::string& reason);
  void Arrived(int i);

 private:
  std::string Text() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int stages_;
  const Say say_;
  const std::function<SteadyTime()> now_;
  absl::Mutex mutex_;
  SteadyTime next_ ABSL_GUARDED_BY(mutex_);
  std::map<int, std::string> missing_ ABSL_GUARDED_BY(mutex_);  // "NAME: REASON", by stage
};

// Leases, waiting and watching of a fleet.
struct FleetOptions {
  double lease_seconds = 15;
  // Generation of the leases. Whoever comes back to a run's stages has their secret and a higher
  // generation.
  uint64_t generation = 1;
  std::string lease_secret = {};  // of the leases; empty: a new one
  // Whether servers that are taken over from an earlier generation keep their stage's state.
  bool keeps_state = false;
  bool in_epoch = false;  // see set_in_epoch
  // Whether another fleet goes on with what the stages keep, and ends in place of this one.
  bool hands_over_interruptions = false;
  // Whether each server has joined a run that can do without it; empty: none has.
  std::vector<bool> are_guests = {};
  CarrierGrid grid;  // of the machines that carry the experiment at each stage, or at most
  std::vector<int> stage_carriers = {};  // numbers of carriers of all stages, if they differ
  std::string build;  // build that every stage must have (base/build_info.h); empty: any
  absl::Duration patience = absl::Seconds(20);  // how long to wait for stages to be there and free
  // Gets a line now and then while it waits; may be null.
  std::function<void(const std::string&)> say_waiting;
  Security security;
  // Gets the answers of all servers, in their order, each time that all are leased; may be null.
  std::function<void(const std::vector<AcquireResponse>&)> on_acquired = {};
  // Gets their answers each time that all are configured; may be null.
  std::function<void(const std::vector<ConfigureResponse>&)> on_configured = {};
  HeartbeatOptions heartbeat;
  // Measures the servers of a run whose replicas may be dealt anew at any time; null: none is.
  // Outlives the fleet.
  Dealer* dealer = nullptr;
  // Longest time in which the other stages may still report after one has failed, and to wait for
  // the watcher to see that a lost one has died.
  absl::Duration grace = absl::Seconds(1);
  // True if the stages' processes are watched, so that Fail is called when one dies.
  bool are_watched = false;
};

// A failure or an interruption is final: afterwards every call is cancelled. An interrupted
// training first ends its step.
class Fleet {
 public:
  // Longest time that a server has to show that it is there.
  static constexpr absl::Duration kAnswer = absl::Seconds(2);

  // Makes a client for each address: all stages of the first carrier, then those of the next. All
  // leases are for `run`.
  Fleet(const std::vector<std::string>& addresses, const std::string& run,
        const FleetOptions& options);
  ~Fleet();

  int size() const { return static_cast<int>(clients_.size()); }  // number of servers
  const FleetOptions& options() const { return options_; }
  const CarrierGrid& grid() const { return options_.grid; }
  const Pipelines& pipelines() const { return pipelines_; }
  int carriers() const { return pipelines_.carriers(); }  // of every stage, or of that with most
  int stages() const { return pipelines_.stages; }
  StageClient& server(int i) { return *clients_[static_cast<size_t>(i)]; }
  // Returns a stage of the first carrier, or of another.
  StageClient& stage(int i, int carrier = 0) { return server(pipelines_.ServerAt(i, carrier)); }

  // Returns `error` of a server's own doing. If that server is a guest, the run has failed because
  // it is unfit.
  absl::Status OfGuest(int server, absl::Status error);
  bool IsGuest(int server) const;
  // Returns whether this error of Configure is that of a server that lacks memory for the replicas
  // that it was dealt by speed, and will be dealt fewer; or that was to go to another stage, and
  // will not.
  bool TakesOtherDeal(int server, const absl::Status& error);
  // Fails if any does, so that they are dealt anew; once all are configured, as only then they
  // have what they keep.
  absl::Status CheckDeal();

  // Returns the secret that the stages' links show each other.
  const std::string& link_secret() const { return link_secret_; }

  // Waits for every stage, acquires it and renews its lease from then on. `answers` are in order of
  // stages. FailedPrecondition names a stage of another build than `options` ask for, and both
  // builds.
  absl::Status Acquire(std::vector<AcquireResponse>* answers);
  // Returns whether Acquire has succeeded.
  bool acquired() const { return acquired_; }

  // Calls `work` for every stage at once, each on its own thread, and returns when all have
  // returned. When one fails, here or through Fail, the others are cancelled after the grace and
  // the root cause is returned. Cancelled after Interrupt. One thread at a time.
  absl::Status OnAll(const std::function<absl::Status(StageClient&)>& work);
  // Does the same for the stages of the first row of carriers, which have all that any carriers
  // have but what is remembered of replicas.
  absl::Status OnFirstRow(const std::function<absl::Status(StageClient&)>& work);

  // Does the same for `work` that trains: Interrupt lets all stages end the latest step that any of
  // them has begun. This returns Cancelled too, but the stages can take other calls, all after that
  // same step.
  absl::Status TrainOnAll(const std::function<absl::Status(StageClient&)>& work);
  // Sets `in_epoch`. While `in_epoch` is set, an Interrupt between two calls of TrainOnAll cancels
  // nothing, and the next TrainOnAll does not begin. Any thread.
  void set_in_epoch(bool in_epoch);
  // Returns whether TrainOnAll ended after a step, or did not begin, because of Interrupt or of a
  // leaving stage.
  bool ended_after_step() const;
  // Returns the first stage that is to end and waits for us to leave it; nothing after Interrupt.
  // Because of it TrainOnAll ends after a step, as after Interrupt, and does not begin again.
  std::optional<Failure> leaving() const;

  // Renews the lease of a server besides its heartbeat, and returns the answer. Any thread.
  absl::StatusOr<RenewResponse> Renew(int server, absl::Duration patience);

  // Returns whether a server's pipeline follows: it carries no replica, and makes the updates of
  // those that do, as soon as it has the state for that.
  bool Follows(int server) const { return server >= carrying_; }
  // Sets that OnAll, and what it says of all stages, leaves those that follow out from now on.
  void SetApart();
  // Sets that all that follow stand where the others do, after training has ended.
  void SetCaughtUp();
  // Returns whether all servers stand there, as they do where none follows. Any thread.
  bool have_caught_up() const;
  // Returns whether Interrupt waits for the fleet that goes on. Any thread.
  bool is_interruption_handed_over() const;
  // Returns whether the fleet has failed. Any thread.
  bool has_failed() const;

  // Takes what a server has reported while it trains. If another deal of the replicas would be
  // faster, TrainOnAll ends after a step. Any thread.
  void Measure(int server, const StageReport& report);

  // Returns when TrainOnAll has begun for the first time; nothing before. Any thread.
  std::optional<SteadyTime> trains_since() const;

  // Makes TrainOnAll end after a step, for another reason than the loss of a stage. Any thread.
  void EndAfterStep(Failure reason) { Leave(std::move(reason)); }

  // Returns the servers that are lost, do not answer within seconds, or are to end; before Abandon.
  struct Parted {
    int server = 0;
    bool ends = false;  // True: it answers that it is to end.
  };
  std::vector<Parted> Gone();

  // Reports a failure seen elsewhere: a process that died, a file that cannot be written. Any
  // thread.
  void Fail(Failure failure);

  // Cancels all calls at once, but for TrainOnAll and the fetch of a snapshot. With
  // hands_over_interruptions it does nothing once TrainOnAll has failed, or a leaving stage has
  // ended it: the fleet that goes on is to end then. Any thread.
  void Interrupt();
  bool interrupted() const;

  // Returns why the fleet has failed; nothing if it has not. May ask the stages which of them is
  // lost.
  std::optional<Failure> cause();

  // Stops the heartbeats and keeps the leases, to be taken over or to expire. No other call after
  // it.
  void Abandon();

  // Stops the heartbeats and frees the stages that answer. No other call after it.
  void Release();

 private:
  absl::Status CheckBuild(const StageClient& client, const BuildInfo& build) const;
  bool EndTraining();
  // Notes that another fleet goes on, if that is so after this end of TrainOnAll.
  void NoteEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the number of servers, the first ones, that calls are for.
  int called() const;
  void Leave(Failure stage);
  void AwaitAll();
  void CancelAll();
  // Reports lost stages, if a failure suggests one and none is known.
  void FindLost();
  // Reports stages that are gone or do not answer; returns true if any is gone.
  bool AskWhoIsLost();
  void AwaitDeath();
  // Returns how long a server has to show that it is there.
  absl::Duration Patience(int server) const;
  // Returns whether it is known that the server is lost.
  bool IsKnownLost(int server) const;

  const FleetOptions options_;
  const Pipelines pipelines_;
  const int carrying_;  // number of servers, the first ones, whose pipelines carry replicas
  const std::string link_secret_ = NewSecret();
  std::vector<std::unique_ptr<StageClient>> clients_;
  Pulse pulse_;                                         // of all servers
  std::vector<std::unique_ptr<Heartbeat>> heartbeats_;  // by stage; null until it is acquired
  bool acquired_ = false;                               // True once all are.

  // A standard mutex, as changed_ is waited for with a deadline (see SteadyTime::chrono).
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;         // threads in OnAll
  bool are_apart_ ABSL_GUARDED_BY(mutex_) = false;  // those that follow
  bool have_caught_up_ ABSL_GUARDED_BY(mutex_) = false;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  bool asked_to_end_ ABSL_GUARDED_BY(mutex_) = false;  // Interrupt was called
  std::optional<Failure> leaving_ ABSL_GUARDED_BY(mutex_);
  bool is_followed_up_ ABSL_GUARDED_BY(mutex_) = false;  // by another fleet, which gets Interrupt
  bool is_handed_over_ ABSL_GUARDED_BY(mutex_) = false;  // Interrupt has come since
  bool trains_ ABSL_GUARDED_BY(mutex_) = false;          // True during TrainOnAll.
  std::optional<SteadyTime> trains_since_ ABSL_GUARDED_BY(mutex_);
  bool in_epoch_ ABSL_GUARDED_BY(mutex_) = false;
  // The current or the next training ends after a step.
  bool ends_step_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Failure> overdealt_ ABSL_GUARDED_BY(mutex_);  // see CheckDeal
  std::vector<Failure> failures_ ABSL_GUARDED_BY(mutex_);     // in order of arrival
};

}  // namespace thinwire
