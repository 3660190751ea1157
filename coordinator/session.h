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
#include "coordinator/interruption.h"
#include "proto/experiment.pb.h"
#include "security/security.h"

namespace thinwire {

struct SessionOptions {
  std::vector<std::string> stages;  // addresses of servers started by hand; empty: launch them here
  bool allow_other_build = false;   // than this program's
  double wait_seconds = 15;         // for the servers to be there
  std::function<void(const std::string&)> say_waiting;  // lines while they are not; null: none
  SecurityOptions security;  // towards these servers; a path left empty is the experiment's
  // The rest is about servers that are launched here.
  std::vector<std::string> libraries;  // codec plug-ins that come besides the experiment's
  std::string stage_server;            // path of the binary; empty: look beside our own
  std::string cuda_plugin;             // empty: the stage server looks for it
  std::string logs_dir;  // empty: a temporary folder, which is removed with the session
};

// The experiment of a file, with as many stages as `options->stages` names where neither the file
// nor an override says; these become one address per stage. Errors of LoadExperiment, and
// InvalidArgument for addresses.
absl::StatusOr<Experiment> LoadForStages(const std::string& path,
                                         const std::vector<std::string>& overrides,
                                         SessionOptions* options);

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

  // Frees the stages of their lease: the fleet makes no call after it, and signals are not for it
  // any more. Launched stages go on serving their metrics. Idempotent.
  void Release();

 private:
  Session(std::string run, Interruption* interruption)
      : run_(std::move(run)), interruption_(*interruption) {}
  absl::Status Launch(const std::string& name, const Experiment& experiment,
                      const SessionOptions& options);

  const std::string run_;
  Interruption& interruption_;
  std::unique_ptr<TemporaryFolder> logs_;
  std::unique_ptr<Fleet> fleet_;
  bool released_ = false;
  std::unique_ptr<LocalStages> local_;  // goes first: its watcher reports to the fleet
};

}  // namespace thinwire
