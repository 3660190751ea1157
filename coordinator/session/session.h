// The stage servers of one command, from their start to their end: launched on this machine or
// found where the user says that they are, leased by one fleet, watched, and told of Ctrl-C.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/files/temporary_folder.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/fleet/launcher.h"
#include "coordinator/session/interruption.h"
#include "proto/experiment.pb.h"
#include "security/security.h"

namespace thinwire {

struct SessionOptions {
  std::vector<std::string> stages;  // addresses of servers started by hand; empty: launch them here
  // More addresses, to which stages move that are lost; filled in only where they are taken.
  bool takes_spares = false;
  std::vector<std::string> spares;
  bool allow_other_build = false;  // than this program's
  // For the servers to be there, and free: a little longer than a lease that nobody renews.
  double wait_seconds = 20;
  double return_seconds = 300;  // for one that was lost to come back
  // Where the lease is kept for whoever comes back to these servers; empty: nowhere. One that is
  // there is taken up.
  std::string lease_file;
  std::function<void(const std::string&)> say_waiting;  // lines while they are not; null: none
  SecurityOptions security;  // towards these servers; a path left empty is the experiment's
  // The rest is about servers that are launched here.
  std::vector<std::string> libraries;  // codec plug-ins that come besides the experiment's
  std::string stage_server;            // path of the binary; empty: look beside our own
  std::string cuda_plugin;             // empty: the stage server looks for it
  std::string logs_dir;  // empty: a temporary folder, which is removed with the session
};

// The experiment of a file, with as many stages as `options->stages` names where neither the file
// nor an override says; these become one address per stage, and spares. Where the stages run on
// this machine, the paths that they read become absolute. `past`: see Surroundings. Errors of
// LoadExperiment, InvalidArgument for addresses, and those of the files that show us to the stages.
absl::StatusOr<Experiment> LoadForStages(const std::string& path,
                                         const std::vector<std::string>& overrides,
                                         SessionOptions* options, const Experiment* past = nullptr);

class Session {
 public:
  // Launches the stages of the resolved `experiment`, unless there are addresses. From then on a
  // signal interrupts the fleet, and the death of a launched stage is a failure of the fleet. The
  // run's id is `name` with random digits behind it. To be called on the main thread and before
  // gRPC is used (see LocalStages::Start). `interruption` outlives this object.
  static absl::StatusOr<std::unique_ptr<Session>> Start(const std::string& name,
                                                        const Experiment& experiment,
                                                        const SessionOptions& options,
                                                        Interruption* interruption);
  // Releases the stages; ends those that were launched.
  ~Session();

  const std::string& run() const { return run_; }
  Fleet* fleet() { return fleet_.get(); }

  // The stages again when one was lost for that reason: launched ones that died or hang are started
  // anew; of others one that is silent moves to a spare, or is waited for. They are leased with the
  // next generation once Acquire is called; the fleet before is gone. On the main thread.
  absl::StatusOr<Fleet*> NextGeneration(const Failure& loss);

  // Frees the stages of their lease: the fleet makes no call after it, and signals are not for it
  // any more. Launched stages go on serving their metrics. Idempotent.
  void Release();

 private:
  Session(std::string run, Interruption* interruption)
      : run_(std::move(run)), interruption_(*interruption) {}
  absl::Status Launch(const std::string& name, const Experiment& experiment,
                      const SessionOptions& options);
  // Takes up what the lease's file says, if it is there, and writes what is to be said now.
  absl::Status ReadLease();
  absl::Status WriteLease() const;
  absl::Status MakeFleet();
  absl::Status RestartLocal(int stage);

  std::string run_;
  Interruption& interruption_;
  std::string lease_file_;
  FleetOptions fleet_options_;
  std::vector<std::string> addresses_, spares_;
  absl::Duration return_patience_;
  std::unique_ptr<TemporaryFolder> logs_;
  std::unique_ptr<Fleet> fleet_;
  bool released_ = false;
  std::unique_ptr<LocalStages> local_;  // goes first: its watcher reports to the fleet
};

}  // namespace thinwire
