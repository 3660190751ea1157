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
#include "proto/stage.pb.h"
#include "stage_server/lease.h"
#include "stage_server/log.h"
#include "stage_server/run.h"

namespace thinwire {

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
  // Leases the server to `holder`, and ends the run of the lease that was there.
  Answer Acquire(const Lease& lease, const std::string& holder, double seconds);

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

 private:
  // Makes a change of the lease, and once that is made ends the run that was there, whose lease it
  // was.
  absl::Status EndRun(const std::function<absl::Status()>& change, const absl::Status& reason);
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
  bool leaves_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace thinwire
