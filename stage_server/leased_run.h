// The lease of a server and the run that goes with it, under one lock: what ends the lease ends the
// run. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "proto/stage.pb.h"
#include "stage_server/log.h"
#include "stage_server/run.h"

namespace thinwire {

// Decides who may use this server. One run at a time holds it, for as long as it renews its lease.
// The lease's secret proves the run, and generations fence off its older coordinators. Time is
// passed in. Not thread-safe.
//
// Every caller without the secret of the lease in force gets the same words, which tell neither
// run, generation nor holder.
class LeaseHolder {
 public:
  // Makes leases last until they are released. For a server that ends with its coordinator anyway,
  // however long the coordinator pauses.
  void set_lasts() { lasts_ = true; }

  // Grants `lease` until `seconds` after now, and after each renewal. InvalidArgument unless
  // `seconds` is above 0 and at most ten minutes, and for a secret shorter than kMinSecretBytes. If
  // another lease is in force, one of the same run and secret and a higher generation replaces it.
  // With only the secret equal the answer is FailedPrecondition. With another secret it is
  // Unavailable, as the server will be free again.
  absl::Status Acquire(const Lease& lease, const std::string& holder, double seconds,
                       SteadyTime now);
  // These return FailedPrecondition unless `lease` is in force and has not expired.
  absl::Status Check(const Lease& lease, SteadyTime now) const;
  absl::Status Renew(const Lease& lease, SteadyTime now);
  absl::Status Release(const Lease& lease, SteadyTime now);

  // Returns how long the held lease lasts if nobody renews it; infinite with set_lasts.
  absl::Duration Left(SteadyTime now) const;
  bool IsHeld(SteadyTime now) const { return held_ && (lasts_ || now < held_->expires); }

  // Returns "run one generation 1 (host a)" for this machine's own log; empty if nobody holds a
  // lease.
  std::string InForce(SteadyTime now) const;

  // Returns the id of the run that has it; empty: nobody has it.
  std::string run(SteadyTime now) const { return IsHeld(now) ? held_->lease.run() : ""; }

  // Returns a lease that has run out, once; the server is then free.
  std::optional<Lease> TakeExpired(SteadyTime now);

 private:
  struct Held {
    Lease lease;
    std::string holder;
    absl::Duration duration;
    SteadyTime expires;
  };

  bool lasts_ = false;
  std::optional<Held> held_;
};

class LeasedRun {
 public:
  // Makes leases last until they are released (LeaseHolder::set_lasts); before the first call.
  void set_lasts();

  // Gives nobody a lease any more, and tells who holds one to leave.
  void AskToLeave();

  // Ends the run, and lets no other begin.
  void Stop();

  struct Answer {
    absl::Status status;   // names the time until when the server is not to be had
    std::string in_force;  // the lease that was there before, or empty
    bool is_news = false;  // of a refusal: the last one was another; who waits asks again and again
  };
  // Leases the server to `holder`, and ends the run of the lease that was there. With `keeps_state`
  // a run whose lease is taken over is kept, for TakePast.
  Answer Acquire(const Lease& lease, const std::string& holder, double seconds,
                 bool keeps_state = false);

  // Returns the ended run that was kept; null: none. TakePast keeps it no longer.
  std::shared_ptr<StageRun> past() const;
  absl::StatusOr<std::shared_ptr<StageRun>> TakePast(const Lease& lease);

  // Renews the lease, and tells it how far its run is.
  absl::Status Renew(const RenewRequest& request, RenewResponse* response);

  // Ends the lease and its run, and returns whose they were.
  absl::StatusOr<LogSubject> Release(const Lease& lease);

  // Does the same for a lease that ran out, once after each.
  std::optional<LogSubject> TakeExpired();

  // Ends the run of the lease, which makes room for another.
  absl::Status Clear(const Lease& lease);

  // Lets `run` begin, unless the lease has ended while it was built.
  absl::Status Begin(const Lease& lease, std::shared_ptr<StageRun> run);

  // Returns the lease's run; FailedPrecondition while it has none.
  absl::StatusOr<std::shared_ptr<StageRun>> Of(const Lease& lease) const;

  // Returns OK while the lease is in force and has no run.
  absl::Status CheckMeasures(const Lease& lease) const;

  // Returns null while there is none.
  std::shared_ptr<StageRun> run() const;
  bool IsLeased() const;
  // Returns the id of the run that has the lease; empty: nobody has it.
  std::string holder() const;

 private:
  // Makes a change of the lease, and once that is made ends the run that was there, whose lease it
  // was. `keeps` is asked behind the change whether that run becomes the past one; else there is
  // none.
  absl::Status EndRun(
      const std::function<absl::Status()>& change, const absl::Status& reason,
      const std::function<bool()>& keeps = [] { return false; });
  absl::Status CheckMayBuild(const Lease& lease) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Leases the server, or says until when it is not to be had.
  absl::Status Lend(const Lease& lease, const std::string& holder, double seconds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LogSubject SubjectOf(const Lease& lease) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  LeaseHolder lease_ ABSL_GUARDED_BY(mutex_);
  std::string last_refused_ ABSL_GUARDED_BY(mutex_);  // to whom, and whose it was; empty: nobody
  // The run of the lease in force, with which it goes; the last call that works for it destroys it.
  std::shared_ptr<StageRun> run_ ABSL_GUARDED_BY(mutex_);
  // The run of an earlier generation of the lease in force, if that is kept.
  std::shared_ptr<StageRun> past_ ABSL_GUARDED_BY(mutex_);
  bool leaves_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace thinwire
