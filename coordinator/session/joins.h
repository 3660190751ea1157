// The servers that offer themselves to a run, while they are connected: who may come in, and who
// has.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/session/trial.h"
#include "proto/members.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Thread-safe.
class Joins {
 public:
  // Most servers that are connected at once.
  static constexpr size_t kMost = 64;

  // `run` is the run's id. With `takes_others` servers of other builds and with other instructions
  // are taken, too.
  Joins(std::string run, bool takes_others) : run_(std::move(run)), takes_others_(takes_others) {}

  const std::string& run() const { return run_; }

  // Set what the run's first server is, and what it and the server of the last stage have read and
  // compute on; before that nobody is taken in.
  void SetFirst(const BuildInfo& first);
  void SetEnds(const ConfigureResponse& first, const ConfigureResponse& last);
  // Sets the addresses of the servers that have a stage.
  void SetCarrying(const std::vector<std::string>& addresses);
  // Sets the lease with which the run has its servers.
  void SetLease(const Lease& lease);
  Lease lease() const;

  // Takes note of an offer, which lasts until Withdraw. Returns whether it is of a server that has
  // a stage and is connected again; any other is to be tried (trial.h), and then Admit is called.
  // Errors are those of Membership.Join; then nothing is to be withdrawn.
  absl::StatusOr<bool> Offer(const JoinRequest& offer);
  // Takes in a server that was tried, or returns why not.
  absl::Status Admit(const std::string& address, const TriedServer& tried);
  void Withdraw(const std::string& address);

  // Returns those that were taken in since the last call and are still connected.
  std::vector<std::string> TakeAdmitted();
  bool IsConnected(const std::string& address) const;

  // Ends the calls of these servers, which the run has lost. They may offer themselves again.
  void Lose(const std::vector<std::string>& addresses);
  // Ends the call of a server that cannot do its work, and refuses its address from now on.
  void Dismiss(const std::string& address, const absl::Status& why);
  // Ends all calls, as the run has ended; nobody is taken in any more.
  void End();

  // Returns whether the run has ended. An error ends the server's call.
  absl::StatusOr<bool> HasEnded(const std::string& address) const;

 private:
  // Checks an end of a pipeline against that of the run.
  absl::Status CheckEnd(const std::string& address, const ConfigureResponse& end,
                        const ConfigureResponse& of_run) const;
  absl::Status CheckLike(const std::string& address, const BuildInfo& build) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void EndCall(const std::string& address, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string run_;
  const bool takes_others_;
  mutable absl::Mutex mutex_;
  Lease lease_ ABSL_GUARDED_BY(mutex_);
  std::optional<BuildInfo> first_ ABSL_GUARDED_BY(mutex_);
  std::vector<ConfigureResponse> ends_ ABSL_GUARDED_BY(mutex_);  // of a pipeline; empty: unknown
  std::set<std::string> carrying_ ABSL_GUARDED_BY(mutex_);
  // By address; an error ends the call.
  std::map<std::string, absl::Status> connected_ ABSL_GUARDED_BY(mutex_), dismissed_
      ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> admitted_ ABSL_GUARDED_BY(mutex_);
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// Returns InvalidArgument unless `address` is one at which others reach a server whose call comes
// from `peer`, as ServerContext::peer() names it.
absl::Status CheckOffered(const std::string& address, const std::string& peer);

}  // namespace thinwire
