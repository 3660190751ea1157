#include "coordinator/fleet/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cores.h"
#include "base/file.h"
#include "base/path.h"
#include "base/status.h"
#include "config/local_paths.h"
#include "coordinator/fleet/child_process.h"
#include "coordinator/fleet/stage_setup.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

// Longest path of a Unix socket, its final zero included.
constexpr size_t kSocketPathBytes = 108;
// Characters that gRPC takes literally in a target "unix:PATH"; others, such as %, have a meaning
// in a URI.
constexpr char kPlainInUri[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-~";
constexpr int kLastLines = 6;  // number of lines of a dead child's log that the user sees
// A killed child ends at once unless it is in a system call that cannot be interrupted.
constexpr absl::Duration kLastPatience = absl::Seconds(5);

absl::Status SystemError(const std::string& what) { return absl::ErrnoToStatus(errno, what); }

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(duration)));
}

bool Readable(int fd, absl::Duration timeout) {
  pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, Milliseconds(timeout)) > 0;
}

constexpr char kOwnBinary[] = "/proc/self/exe";

// Returns the folders of the libraries, in which the stages look for them by file name.
absl::StatusOr<std::vector<std::string>> FoldersOf(const std::vector<std::string>& libraries) {
  std::map<std::string, std::string> folder_of;
  std::set<std::string> folders;
  for (const std::string& path : libraries) {
    std::error_code error;
    const auto library = std::filesystem::absolute(WithHome(path), error).lexically_normal();
    if (error) return FileError(path, "cannot follow", error.value());
    const std::string folder = library.parent_path().string();
    if (folder.find(':') != folder.npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("codec plug-in ", path, ", want a folder without ':', which is ", folder));
    }
    const std::string other = folder_of.emplace(library.filename().string(), folder).first->second;
    if (other != folder) {
      return absl::InvalidArgumentError(absl::StrCat("codec plug-in ", path,
                                                     " has the file name of another, in ", other,
                                                     ", want different ones"));
    }
    folders.insert(folder);
  }
  for (const auto& [name, folder] : folder_of) {
    for (const std::string& other : folders) {
      std::error_code ignored;
      if (other == folder || !std::filesystem::exists(absl::StrCat(other, "/", name), ignored)) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("codec plug-in ", name, " is in ", folder, " and in ", other,
                       ", where the experiment's other plug-ins are; want different file names"));
    }
  }
  return std::vector<std::string>(folders.begin(), folders.end());
}

}  // namespace

std::string LaunchOptions::NameOf(int server) const {
  const auto [stage, carrier] = pipelines.PlaceOf(server);
  return absl::StrCat("stage ", stage,
                      pipelines.CarriersOf(stage) > 1 ? absl::StrCat(" of carrier ", carrier) : "");
}

LocalStages::LocalStages(const LaunchOptions& options) : options_(options) {
  processes_.resize(options.servers());
  process_fds_.resize(options.servers(), -1);
  ready_fds_.resize(options.servers(), -1);
  addresses_.resize(options.servers());
}

absl::StatusOr<std::unique_ptr<LocalStages>> LocalStages::Start(const LaunchOptions& options) {
  auto stages = std::unique_ptr<LocalStages>(new LocalStages(options));
  if (!options.tcp) RETURN_IF_ERROR(stages->MakeSocketFolder());
  if (pipe2(stages->lifeline_, O_CLOEXEC) != 0) return SystemError("cannot make a pipe");
  for (int i = 0; i < options.servers(); ++i) RETURN_IF_ERROR(stages->Spawn(i));
  const SteadyTime deadline = SteadyTime::Now() + options.patience;
  for (int i = 0; i < options.servers(); ++i) RETURN_IF_ERROR(stages->AwaitReady(i, deadline));
  return stages;
}

std::string LocalStages::LogOf(int stage) const {
  return absl::StrCat(options_.logs_dir, "/stage-", stage, ".log");
}

std::string LocalStages::SocketOf(int stage) const {
  return absl::StrCat(sockets_->path(), "/stage-", stage, ".sock");
}

absl::Status LocalStages::MakeSocketFolder() {
  const char* parent = getenv("TMPDIR");
  std::string folder = parent != nullptr && *parent != 0 ? parent : "/tmp";
  const size_t longest = folder.size() + strlen("/thinwire-XXXXXX/stage-9999.sock") + 1;
  if (longest > kSocketPathBytes || folder.find_first_not_of(kPlainInUri) != folder.npos) {
    folder = "/tmp";
  }
  ASSIGN_OR_RETURN(sockets_, TemporaryFolder::Make("thinwire", folder));
  return absl::OkStatus();
}

absl::Status LocalStages::Spawn(int stage) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return SystemError("cannot make a pipe");
  ready_fds_[stage] = ready[0];
  ChildOptions child;
  child.name = options_.NameOf(stage);
  child.arguments = {
      options_.binary,
      options_.tcp ? "--listen=127.0.0.1:0" : absl::StrCat("--listen=unix:", SocketOf(stage)),
      "--metrics_listen=127.0.0.1:0", absl::StrCat("--ready_fd=", ready[1]),
      absl::StrCat("--lifeline_fd=", lifeline_[0]),
      // The stage serves only the user who starts it, so it may use any path.
      "--data=/", "--state=/", absl::StrCat("--swap_dir=", options_.logs_dir)};
  if (!options_.cuda_plugin.empty()) {
    child.arguments.push_back(absl::StrCat("--cuda_plugin=", options_.cuda_plugin));
  }
  if (!options_.codec_plugins.empty()) {
    child.arguments.push_back(
        absl::StrCat("--codec_plugins=", absl::StrJoin(options_.codec_plugins, ":")));
  }
  child.threads = options_.threads;
  child.log = LogOf(stage);
  // The child writes its address to `ready`, and ends when it reads the end of the lifeline.
  child.inherited_fds = {lifeline_[0], ready[1]};
  const absl::StatusOr<pid_t> process = StartChild(child);
  close(ready[1]);
  if (!process.ok()) return process.status();
  processes_[stage] = *process;
  process_fds_[stage] = static_cast<int>(syscall(SYS_pidfd_open, *process, 0));
  if (process_fds_[stage] < 0) return SystemError(absl::StrCat("cannot watch stage ", stage));
  return absl::OkStatus();
}

absl::Status LocalStages::AwaitReady(int stage, SteadyTime deadline) {
  std::string line;
  while (line.find('\n') == std::string::npos) {
    pollfd entries[] = {{ready_fds_[stage], POLLIN, 0}, {options_.interrupt_fd, POLLIN, 0}};
    const int ready = poll(entries, 2, Milliseconds(deadline - SteadyTime::Now()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat(options_.NameOf(stage), " does not serve after ",
                       absl::FormatDuration(options_.patience), "; see ", options_.logs_dir));
    }
    if (entries[1].revents != 0) return absl::CancelledError("interrupted");
    char buffer[512];
    const ssize_t bytes = read(ready_fds_[stage], buffer, sizeof(buffer));
    if (bytes <= 0) {
      if (Readable(process_fds_[stage], absl::Seconds(1))) return HowItEnded(stage);
      return absl::InternalError(
          absl::StrCat(options_.NameOf(stage), " did not say where it serves"));
    }
    line.append(buffer, static_cast<size_t>(bytes));
  }
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.value("listen", nlohmann::json()).is_string()) {
    return absl::InternalError(
        absl::StrCat(options_.NameOf(stage), " said \"", line, "\", want {\"listen\":…}"));
  }
  addresses_[stage] = json["listen"];
  return absl::OkStatus();
}

absl::Status LocalStages::HowItEnded(int stage) {
  const pid_t process = std::exchange(processes_[stage], 0);
  int wait_status = 0;
  waitpid(process, &wait_status, 0);
  std::string message = absl::StrCat(options_.NameOf(stage), " (process ", process, ") ",
                                     thinwire::HowItEnded(wait_status));
  const std::string log = LogOf(stage);
  const std::vector<std::string> last = LastLines(log, kLastLines);
  if (last.empty()) {
    absl::StrAppend(&message, "; it logged nothing");
  } else {
    absl::StrAppend(&message, "; the end of ", log, ":");
    for (const std::string& one : last) absl::StrAppend(&message, "\n    ", one);
  }
  return absl::UnavailableError(message);
}

void LocalStages::Watch(std::function<void(Failure)> on_death) {
  assert(!watcher_.joinable());
  if (pipe2(stop_watching_, O_CLOEXEC) != 0) {
    return on_death({Failure::kCoordinator, Failure::Kind::kError,
                     SystemError("cannot make a pipe to watch the stages")});
  }
  watcher_ = std::thread([this, on_death = std::move(on_death)] { WatchLoop(on_death); });
}

void LocalStages::WatchLoop(const std::function<void(Failure)>& on_death) {
  std::vector<pollfd> entries;
  for (int i = 0; i < options_.servers(); ++i) {
    entries.push_back({processes_[i] == 0 ? -1 : process_fds_[i], POLLIN, 0});
  }
  entries.push_back({stop_watching_[0], POLLIN, 0});
  while (true) {
    if (poll(entries.data(), entries.size(), /*timeout=*/-1) < 0) continue;  // EINTR
    if (entries.back().revents != 0) return;
    for (int i = 0; i < options_.servers(); ++i) {
      if (entries[i].revents == 0) continue;
      entries[i].fd = -1;  // poll skips it
      on_death({i, Failure::Kind::kDead, HowItEnded(i)});
    }
  }
}

void LocalStages::Unwatch() {
  // Closing it ends the loop.
  if (stop_watching_[1] >= 0) close(std::exchange(stop_watching_[1], -1));
  if (watcher_.joinable()) watcher_.join();
  if (stop_watching_[0] >= 0) close(std::exchange(stop_watching_[0], -1));
}

// Waits for the child until the deadline, then kills it.
void LocalStages::End(int stage, SteadyTime deadline) {
  if (processes_[stage] == 0) return;
  if (!Readable(process_fds_[stage], deadline - SteadyTime::Now())) {
    kill(-processes_[stage], SIGKILL);
    Readable(process_fds_[stage], kLastPatience);
  }
  waitpid(std::exchange(processes_[stage], 0), nullptr, WNOHANG);
}

void LocalStages::CloseDescriptorsOf(int stage) {
  for (int* fd : {&process_fds_[stage], &ready_fds_[stage]}) {
    if (*fd >= 0) close(std::exchange(*fd, -1));
  }
}

bool LocalStages::IsThere(int stage) const {
  return processes_[stage] != 0 && !Readable(process_fds_[stage], absl::ZeroDuration());
}

absl::Status LocalStages::Restart(int stage) {
  assert(!watcher_.joinable());
  End(stage, SteadyTime::Now());
  CloseDescriptorsOf(stage);
  if (sockets_) unlink(SocketOf(stage).c_str());  // a killed child leaves it behind
  RETURN_IF_ERROR(Spawn(stage));
  return AwaitReady(stage, SteadyTime::Now() + options_.patience);
}

void LocalStages::Stop(absl::Duration grace) {
  Unwatch();
  // Closing it tells the children to end.
  if (lifeline_[1] >= 0) close(std::exchange(lifeline_[1], -1));
  for (pid_t process : processes_) {
    if (process > 0) kill(-process, SIGTERM);
  }
  const SteadyTime deadline = SteadyTime::Now() + grace;
  for (int i = 0; i < options_.servers(); ++i) End(i, deadline);
  sockets_.reset();
}

LocalStages::~LocalStages() {
  Stop();
  for (int i = 0; i < options_.servers(); ++i) CloseDescriptorsOf(i);
  if (lifeline_[0] >= 0) close(lifeline_[0]);
}

absl::StatusOr<std::string> FindStageServer(const std::string& own_binary) {
  const std::string folder = std::filesystem::path(own_binary).parent_path().string();
  const std::string beside = folder + "/stage_server";
  const std::string built =
      std::filesystem::path(folder).parent_path().string() + "/stage_server/stage_server";
  for (const std::string& path : {built, beside}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) return path;
  }
  return absl::NotFoundError(absl::StrCat("no stage server at ", built, " nor at ", beside,
                                          "; say where it is with --stage_server"));
}

absl::StatusOr<LaunchOptions> LocalLaunch(const Experiment& experiment, Pipelines pipelines,
                                          const std::string& binary,
                                          std::vector<std::string> libraries) {
  LaunchOptions options;
  options.binary = binary;
  if (options.binary.empty()) {
    std::error_code error;
    const std::filesystem::path own = std::filesystem::read_symlink(kOwnBinary, error);
    if (error) return FileError(kOwnBinary, "cannot read the link", error.value());
    ASSIGN_OR_RETURN(options.binary, FindStageServer(own.string()));
  }
  Experiment copy = experiment;
  for (const StagePath& plugin : StagePathsOf(&copy).plugins) libraries.push_back(*plugin.value);
  ASSIGN_OR_RETURN(options.codec_plugins, FoldersOf(libraries));
  const PipelineConfig& pipeline = experiment.pipeline();
  const int carriers = pipelines.carriers();
  options.pipelines = std::move(pipelines);
  const std::vector<StageHost> hosts(static_cast<size_t>(options.servers()), {"", UsableCores()});
  const int at_once = carriers * static_cast<int>(pipeline.microbatches());
  options.threads = ThreadsPerStage(pipeline.threads(), at_once, hosts).front();
  options.tcp = pipeline.transport() == "tcp";
  return options;
}

}  // namespace thinwire
