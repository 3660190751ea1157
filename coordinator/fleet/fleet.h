// All stages of a command: calls on all of them at once, and one answer to why it failed.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/secret.h"
#include "coordinator/fleet/failure.h"
#include "coordinator/fleet/heartbeat.h"
#include "coordinator/fleet/stage_client.h"
#include "security/security.h"

namespace thinwire {

struct FleetOptions {
  double lease_seconds = 15;
  // Of the leases: who comes back to a run's stages has its secret and a higher generation.
  uint64_t generation = 1;
  std::string lease_secret = {};  // empty: a new one
  std::string build;              // that every stage must be of (base/build_info.h); empty: any
  absl::Duration patience = absl::Seconds(20);          // for stages to be there, and free
  std::function<void(const std::string&)> say_waiting;  // lines while they are not; null: none
  Security security;
  HeartbeatOptions heartbeat;
  // How long the other stages may still tell their side once one has failed, and the watcher that a
  // lost one has died.
  absl::Duration grace = absl::Seconds(1);
  // The processes of the stages are watched: when one dies, Fail is called.
  bool are_watched = false;
};

// Fails once and for good: after a failure or an interruption every call is cancelled, but that an
// interrupted training first ends its step.
class Fleet {
 public:
  // One stage per address, in order. All leases are for `run`.
  Fleet(const std::vector<std::string>& addresses, const std::string& run,
        const FleetOptions& options);
  ~Fleet();

  int size() const { return static_cast<int>(clients_.size()); }
  StageClient& stage(int i) { return *clients_[static_cast<size_t>(i)]; }

  // Which the stages' links show each other.
  const std::string& link_secret() const { return link_secret_; }

  // Waits for every stage to be there, acquires it and keeps each lease from then on. The answers
  // are in order of stages. FailedPrecondition names a stage of another build than the options',
  // and both builds.
  absl::Status Acquire(std::vector<AcquireResponse>* answers);

  // Calls `work` for every stage at once, each on a thread of its own, and returns when all have
  // returned. When one fails, here or through Fail, the others are cancelled after the grace and
  // the root cause is returned. Cancelled after Interrupt. One thread at a time.
  absl::Status OnAll(const std::function<absl::Status(StageClient&)>& work);

  // The same for `work` that trains: Interrupt lets all stages end the step that any of them has
  // begun. Cancelled then, too, but the stages are there for other calls, all after that step.
  absl::Status TrainOnAll(const std::function<absl::Status(StageClient&)>& work);
  // While set, Interrupt between two TrainOnAlls cancels nothing: the next one does not begin. Any
  // thread.
  void set_in_epoch(bool in_epoch);
  // Whether that was how TrainOnAll ended, or would not begin.
  bool ended_after_step() const;
  // The first stage that is to end and waits for us to leave it, unless Interrupt was called: then
  // TrainOnAll ends after a step, as after Interrupt, and begins no more.
  std::optional<Failure> leaving() const;

  // Renews that stage's lease beside its heartbeat, for what it answers. Any thread.
  absl::StatusOr<RenewResponse> Renew(int stage, absl::Duration patience);

  // A failure seen elsewhere: a process that died, a file that cannot be written. Any thread.
  void Fail(Failure failure);

  // Cancels everything at once, but for TrainOnAll and the fetch of a snapshot. Any thread.
  void Interrupt();
  bool interrupted() const;

  // Why it has failed; nothing if it has not. May ask the stages which of them is lost.
  std::optional<Failure> cause();

  // Stops the heartbeats and leaves the leases as they are, to be taken over or to run out. No
  // other call after it.
  void Abandon();

  // Stops the heartbeats and frees the stages that answer. No other call after it.
  void Release();

 private:
  absl::Status CheckBuild(const StageClient& client, const BuildInfo& build) const;
  bool EndTraining();
  void Leave(Failure stage);
  void AwaitAll();
  void CancelAll();
  // Where a failure may come from a lost stage and none is known to be, reports those that are.
  void FindLost();
  // Reports stages that are gone or do not answer; true if any is gone.
  bool AskWhoIsLost();
  void AwaitDeath();

  const FleetOptions options_;
  const std::string link_secret_ = NewSecret();
  std::vector<std::unique_ptr<StageClient>> clients_;
  std::atomic<uint64_t> advances_{0};                   // see RenewRequest
  std::vector<std::unique_ptr<Heartbeat>> heartbeats_;  // by stage; null until it is acquired
  bool acquired_ = false;                               // all of them

  // A standard mutex, as changed_ is waited for with a deadline: see SteadyTime::chrono.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // threads of OnAll
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  bool asked_to_end_ ABSL_GUARDED_BY(mutex_) = false;  // by Interrupt
  std::optional<Failure> leaving_ ABSL_GUARDED_BY(mutex_);
  bool trains_ ABSL_GUARDED_BY(mutex_) = false;  // in TrainOnAll
  bool in_epoch_ ABSL_GUARDED_BY(mutex_) = false;
  bool ends_step_ ABSL_GUARDED_BY(mutex_) = false;         // which Interrupt has asked for
  std::vector<Failure> failures_ ABSL_GUARDED_BY(mutex_);  // in order of arrival
};

}  // namespace thinwire
