// The stage servers of one command, from start to end: launched on this machine or found at given
// addresses, leased by one fleet, watched, and interrupted by Ctrl-C.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/files/temporary_folder.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/fleet/launcher.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/joins.h"
#include "coordinator/session/members.h"
#include "coordinator/session/members_server.h"
#include "coordinator/session/returns.h"
#include "proto/experiment.pb.h"
#include "security/security.h"

namespace thinwire {

// Options about stage servers.
struct SessionOptions {
  std::vector<std::string> stages;  // addresses of running servers; empty: launch them here
  // Number of pipelines that carry the experiment's replicas, each with all stages; 0: that of the
  // addresses, or one.
  int carriers = 0;
  // Numbers of machines of the stages, if these are not the same; then `carriers` is the largest,
  // and addresses are named stage by stage.
  std::vector<int> stage_carriers = {};
  // True if the command accepts spares: further addresses, to which lost stages move.
  bool takes_spares = false;
  std::vector<std::string> spares;
  bool allow_other_build = false;  // True: stages may have another build than this program.
  // Longest time to wait for servers to be there and free; a little longer than a lease that nobody
  // renews.
  double wait_seconds = 20;
  // File that keeps the lease for whoever comes back to these servers; empty: none. A lease that is
  // already there is taken over.
  std::string lease_file;
  // Gets a line now and then while it waits; may be null.
  std::function<void(const std::string&)> say_waiting;
  SecurityOptions security;  // for these servers; an empty path is taken from the experiment
  // host:port at which further servers may join the run; empty: none may.
  std::string listen;
  bool insecure = false;  // True: others may join with neither certificates nor a token.
  // Options for servers that are launched here.
  std::vector<std::string> libraries;  // codec plug-ins besides the experiment's
  std::string stage_server;            // path of the binary; empty: look beside our own
  std::string cuda_plugin;             // empty: the stage server looks for it
  std::string logs_dir;                // empty: a temporary folder that goes with the session
};

// Loads the experiment of a file for the stages of `options`. If neither the file nor an override
// gives the number of stages, it is that of `options->stages`. Those are expanded to one address
// per stage of each carrier, and spares; the number of carriers is filled in. If the stages run on
// this machine, their paths become absolute. `past` is that of Surroundings. Returns the errors of
// LoadExperiment, InvalidArgument for addresses, and errors of the files with certificates and
// token.
absl::StatusOr<Experiment> LoadForStages(const std::string& path,
                                         const std::vector<std::string>& overrides,
                                         SessionOptions* options, const Experiment* past = nullptr);
// Does the same for the text of a file; errors call it `source`.
absl::StatusOr<Experiment> ParseForStages(const std::string& text, const std::string& source,
                                          const std::vector<std::string>& overrides,
                                          SessionOptions* options,
                                          const Experiment* past = nullptr);

// Checks where servers are to join, if anywhere: the experiment must take them in, and `options`
// have addresses of running servers and, unless they are `insecure`, say who may call.
absl::Status CheckListen(const Experiment& experiment, const SessionOptions& options);

// Stage servers of one command.
class Session {
 public:
  // Launches the stages of the resolved `experiment`, unless there are addresses. From then on a
  // signal interrupts the fleet, and the death of a launched stage is a failure of the fleet. The
  // run's id is `name` and random digits. Must be called on the main thread, before gRPC is used
  // (see LocalStages::Start). `interruption` must outlive this object.
  static absl::StatusOr<std::unique_ptr<Session>> Start(const std::string& name,
                                                        const Experiment& experiment,
                                                        const SessionOptions& options,
                                                        Interruption* interruption);
  // Releases the stages; ends those that were launched.
  ~Session();

  const std::string& run() const { return run_; }
  Fleet* fleet() { return fleet_.get(); }
  // Returns host:port at which servers join, with the port in use; empty: nowhere.
  std::string listen_address() const { return joining_ ? joining_->address() : ""; }
  // Returns who is here, and how many came and went; nothing where membership is closed. Any
  // thread.
  std::optional<MemberCounts> member_counts() const;
  // Returns "pipelines a:1 b:1 (3) | c:1 d:1 (1); standing by: e:1; away: f:1" of the current
  // generation, with the replicas of each where they are dealt by speed.
  std::string MembersText() const;

  // Replaces the fleet after the loss of a stage. Launched stages that died or hang are started
  // again. Among other stages, one that is silent or ends moves to a spare, or is waited for. Where
  // membership is open, there may be fewer pipelines from then on, and more of them once servers
  // have come back or joined.
  // Acquire of the new fleet leases them with the next generation. Must be called on the main
  // thread.
  absl::StatusOr<Fleet*> NextGeneration(const Failure& loss);

  // Frees the stages of their lease; the fleet makes no call afterwards and gets no more signals.
  // Launched stages still serve their metrics. Idempotent.
  void Release();

 private:
  Session(std::string run, Interruption* interruption)
      : run_(std::move(run)), interruption_(*interruption) {}
  absl::Status Launch(const std::string& name, const Experiment& experiment,
                      const SessionOptions& options);
  // Takes over the lease in the lease file, if there is one.
  absl::Status ReadLease();
  Lease CurrentLease() const;
  // Writes the current lease to the lease file.
  absl::Status WriteLease() const;
  absl::Status MakeFleet();
  absl::Status RestartLocal(int stage);
  absl::Status RestartLostLocals(const Failure& loss);
  // Moves the lost stage to a spare, if there is one.
  void MoveToSpare(const Failure& loss);
  absl::Status OpenMembership(const Experiment& experiment, const SessionOptions& options);
  // Returns how long the run has trained since the last layout, and how long it had paused for the
  // last one in which servers fetched a state.
  struct Paused {
    absl::Duration trained, pause;
  };
  Paused PausedLast(const Fleet& fleet) const;
  // Returns by pipeline whether a server is laid out where it was not when the run trained last.
  std::vector<bool> HaveNewcomers() const;
  // Lets pipelines with newcomers follow the others, behind which they are placed, while they fetch
  // a large state.
  void LetFollow();
  // Gives servers the places that suit their speeds.
  void Place(const Failure& loss);
  // Take note of what servers are and compute on: for those that join, and for those that may move.
  void TakeBuilds(const std::vector<AcquireResponse>& answers);
  void TakeDevices(const std::vector<ConfigureResponse>& answers);
  // Takes in the servers that have come since the last time.
  void TakeArrivals();
  // Lays out the servers that are left, and those that have come. `parted` do not answer or are to
  // end.
  void Regroup(const Failure& loss, std::vector<Fleet::Parted> parted);
  void WatchReturns();
  // Members as they will be once those have been taken in who have come since the last layout.
  struct Later {
    Members members;
    std::string news;  // who has come last
  };
  // Notes that a server has come.
  void Arrived(const std::string& address, Later* later);
  // Forgets idle servers that had joined and are gone. Lets the run end its step if the others give
  // a pipeline, and another pause for that pays.
  void Look(Later* later, Fleet* fleet);
  // Returns whether a server that stands by answers, and is not another run's.
  bool IsThere(const std::string& address) const;
  void SetCounts(const MemberCounts& counts);
  // Counts a launched stage that was lost, and started again.
  void CountRestarted();

  std::string run_;
  Interruption& interruption_;
  std::string lease_file_;
  FleetOptions fleet_options_;
  bool are_losses_cheap_ = false;  // True: other pipelines go on with what they have.
  AnswerTimes answer_times_;       // of all generations' servers
  bool are_alike_ = true;          // all servers, in builds and instructions
  bool are_states_large_ = false;  // fetching a stage's state takes long
  int follows_ = 0;                // number of pipelines, the last ones, that follow
  std::optional<Dealer> dealer_;   // of replicas, if they may be dealt anew
  // When the last layout began, if servers fetch a state for it; and how long such a one took
  // before.
  std::optional<SteadyTime> takes_in_since_;
  absl::Duration pause_ = absl::ZeroDuration();
  absl::Duration patience_;  // how long to wait for servers that should be there
  std::vector<std::string> addresses_, spares_;
  // Servers of the last layout that has trained, those of them that had their stage's state.
  std::vector<std::string> trained_;
  std::vector<std::string> before_moves_;  // carrying() before the last Place
  std::optional<Members>
      members_;  // not set: membership is closed, or the stages are launched here
  std::unique_ptr<TemporaryFolder> logs_;
  std::unique_ptr<Joins> joins_;            // null: no server may join
  std::unique_ptr<MembersServer> joining_;  // tells joins_
  std::unique_ptr<Fleet> fleet_;
  mutable absl::Mutex returned_mutex_;
  // Who has come, and which idle ones do not answer, since the last regrouping.
  std::vector<std::string> returned_ ABSL_GUARDED_BY(returned_mutex_);
  std::vector<std::string> silent_ ABSL_GUARDED_BY(returned_mutex_);
  // Not set: membership is closed.
  std::optional<MemberCounts> counts_ ABSL_GUARDED_BY(returned_mutex_);
  std::unique_ptr<Returns> returns_;  // tells the fleet, and so goes before it
  bool released_ = false;
  std::unique_ptr<LocalStages> local_;  // destroyed first, as its watcher reports to the fleet
};

}  // namespace thinwire
