// Stage servers on this machine, as children of the coordinator, and how an experiment wants them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "coordinator/files/temporary_folder.h"
#include "coordinator/fleet/failure.h"
#include "coordinator/fleet/pipelines.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Options with which the stage servers start.
struct LaunchOptions {
  int servers() const { return pipelines.servers(); }
  // Returns "stage 1", or "stage 1 of carrier 2" of several, for a server's number.
  std::string NameOf(int server) const;

  std::string binary;   // path of stage_server
  Pipelines pipelines;  // that carry an experiment's replicas
  int threads = 1;      // compute threads of each stage
  // True: serve on 127.0.0.1; false: on Unix sockets in a private temporary folder.
  bool tcp = false;
  std::string cuda_plugin;                 // value of the stage server's flag; empty: not given
  std::vector<std::string> codec_plugins;  // folders with the run's codec plug-ins
  std::string logs_dir;                    // folder; stage-0.log, … receive the children's output
  absl::Duration patience = absl::Seconds(30);  // how long to wait for a child to serve
  int interrupt_fd = -1;  // descriptor; when it is readable, Start gives up waiting
};

// Stage servers of this process. However the coordinator ends, no child outlives it. Children end
// when a pipe closes whose other end only this process holds. The kernel also kills them, even
// stopped ones, with the thread that started them (see child_process.h).
class LocalStages {
 public:
  // Starts the children and returns when all serve. Must be called on the main thread, before gRPC
  // is used. Errors name the stage, how it ended, and the last lines of its log.
  static absl::StatusOr<std::unique_ptr<LocalStages>> Start(const LaunchOptions& options);

  // Calls Stop.
  ~LocalStages();

  const std::vector<std::string>& addresses() const { return addresses_; }  // gRPC targets
  const std::vector<pid_t>& processes() const { return processes_; }

  // Makes `on_death` be called, on a thread of this object, for every child that ends before
  // Unwatch or Stop.
  void Watch(std::function<void(Failure)> on_death);
  // Ends Watch: once it has returned, `on_death` is not called. May be called without Watch.
  void Unwatch();

  // Returns whether the child of that number runs.
  bool IsThere(int stage) const;

  // Ends the child of `stage`, if it still runs, and starts another in its place, whose address may
  // differ. Returns when it serves. The thread and the errors are as in Start. Not while Watch is
  // on.
  absl::Status Restart(int stage);

  // Ends the children with SIGTERM and, after `grace`, with SIGKILL; a released stage has nothing
  // to lose. When it returns, all children and their sockets are gone. Only a child that a system
  // call holds is left to die after some seconds. Idempotent.
  void Stop(absl::Duration grace = absl::Milliseconds(500));

 private:
  explicit LocalStages(const LaunchOptions& options);
  std::string LogOf(int stage) const;
  std::string SocketOf(int stage) const;
  absl::Status MakeSocketFolder();
  absl::Status Spawn(int stage);
  absl::Status AwaitReady(int stage, SteadyTime deadline);
  absl::Status HowItEnded(int stage);
  void End(int stage, SteadyTime deadline);
  void CloseDescriptorsOf(int stage);
  void WatchLoop(const std::function<void(Failure)>& on_death);

  const LaunchOptions options_;
  std::unique_ptr<TemporaryFolder> sockets_;
  int lifeline_[2] = {-1, -1};
  int stop_watching_[2] = {-1, -1};
  std::vector<pid_t> processes_;  // by stage; 0 once reaped
  std::vector<int> process_fds_;  // one pidfd per child
  std::vector<int> ready_fds_;
  std::vector<std::string> addresses_;
  std::thread watcher_;
};

// Finds stage_server relative to `own_binary` (/path/coordinator/thinwire): beside it, or in
// ../stage_server/. NotFound names both paths.
absl::StatusOr<std::string> FindStageServer(const std::string& own_binary);

// Returns the options for the resolved `experiment`, each stage of which `carriers` servers have;
// the caller sets cuda_plugin, logs_dir and interrupt_fd. `binary` is the path of the stage server;
// if it is empty, FindStageServer looks for it, with its errors. `libraries` are codec plug-ins
// besides the experiment's. InvalidArgument if two libraries have one name.
absl::StatusOr<LaunchOptions> LocalLaunch(const Experiment& experiment, Pipelines pipelines,
                                          const std::string& binary,
                                          std::vector<std::string> libraries = {});

}  // namespace thinwire
