// Stage servers on this machine, as children of the coordinator.
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

namespace thinwire {

struct LaunchOptions {
  std::string binary;  // stage_server
  int stages = 1;
  int threads = 1;          // compute threads of each
  bool tcp = false;         // on 127.0.0.1, else Unix sockets in a private temporary folder
  std::string cuda_plugin;  // as the stage server's flag; empty: not given
  std::vector<std::string> codec_plugins;       // folders with the run's codec plug-ins
  std::string logs_dir;                         // stage-0.log, ... take the children's output
  absl::Duration patience = absl::Seconds(30);  // until a child serves
  int interrupt_fd = -1;                        // readable: give up waiting
};

// However the coordinator ends, no child outlives it: children read a pipe whose other end only
// we hold, and the kernel kills them with the thread that made them, even a stopped one (see
// child_process.h).
class LocalStages {
 public:
  // Starts the children and returns when all serve. To be called on the main thread and before
  // gRPC is used. Errors name the stage, how it ended, and the last lines of its log.
  static absl::StatusOr<std::unique_ptr<LocalStages>> Start(const LaunchOptions& options);

  // Stop.
  ~LocalStages();

  const std::vector<std::string>& addresses() const { return addresses_; }  // gRPC targets
  const std::vector<pid_t>& processes() const { return processes_; }

  // From now on `on_death` is called, on a thread of this object, for every child that ends before
  // Unwatch or Stop.
  void Watch(std::function<void(Failure)> on_death);
  // From the return on it is not. Not watched is fine.
  void Unwatch();

  // Whether that child runs.
  bool IsThere(int stage) const;

  // Ends that child, if it is there still, and starts another one in its place, whose address may
  // be a new one. Returns when it serves. Errors as of Start, which holds of the thread as well;
  // while nobody watches.
  absl::Status Restart(int stage);

  // Ends the children with SIGTERM, after `grace` SIGKILL (a released stage has nothing to lose).
  // All are gone when it returns, and so are the sockets; only a child that the system holds is
  // left to die after some seconds. Idempotent.
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
  std::vector<int> process_fds_;  // pidfds
  std::vector<int> ready_fds_;
  std::vector<std::string> addresses_;
  std::thread watcher_;
};

}  // namespace thinwire
