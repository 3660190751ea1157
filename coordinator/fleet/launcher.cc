#include "coordinator/fleet/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

// Longest path of a Unix socket, with its final zero.
constexpr size_t kSocketPathBytes = 108;
// Of a target "unix:PATH" gRPC takes these as they are; others, as %, have a meaning in a URI.
constexpr char kPlainInUri[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-~";
constexpr int kExecFailed = 127;
// A killed child is gone at once, unless a system call that cannot be broken off holds it.
constexpr absl::Duration kLastPatience = absl::Seconds(5);

absl::Status SystemError(const std::string& what) { return absl::ErrnoToStatus(errno, what); }

// Everything that the child needs between fork and exec, where it must not allocate.
struct ChildPlan {
  std::vector<std::string> arguments, environment;
  int null_fd = -1, log_fd = -1, lifeline_fd = -1, ready_fd = -1;

  static std::vector<char*> Pointers(std::vector<std::string>* strings) {
    std::vector<char*> pointers;
    for (std::string& s : *strings) pointers.push_back(s.data());
    pointers.push_back(nullptr);
    return pointers;
  }
};

std::vector<std::string> ChildEnvironment(int threads) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (absl::StartsWith(*entry, "OMP_NUM_THREADS=") ||
        absl::StartsWith(*entry, "OMP_WAIT_POLICY=")) {
      continue;
    }
    environment.push_back(*entry);
  }
  environment.push_back(absl::StrCat("OMP_NUM_THREADS=", threads));
  // Waiting threads of one stage must not take the core that another needs.
  environment.push_back("OMP_WAIT_POLICY=PASSIVE");
  return environment;
}

// In the child: only async-signal-safe calls.
[[noreturn]] void Become(const ChildPlan& plan, char* const* arguments, char* const* environment,
                         pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExecFailed);  // it died before prctl
  dup2(plan.null_fd, STDIN_FILENO);
  dup2(plan.log_fd, STDOUT_FILENO);
  dup2(plan.log_fd, STDERR_FILENO);
  fcntl(plan.lifeline_fd, F_SETFD, 0);
  fcntl(plan.ready_fd, F_SETFD, 0);
  execve(arguments[0], arguments, environment);
  const char* reason = strerrordesc_np(errno);
  const char prefix[] = "cannot execute: ";
  if (write(STDERR_FILENO, prefix, sizeof(prefix) - 1) > 0) {
    if (write(STDERR_FILENO, reason, strlen(reason)) > 0) _exit(kExecFailed);
  }
  _exit(kExecFailed);
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(duration)));
}

bool Readable(int fd, absl::Duration timeout) {
  pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, Milliseconds(timeout)) > 0;
}

}  // namespace

std::string HowItEnded(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return absl::StrCat("was killed by signal ", signal, " (", strsignal(signal), ")");
  }
  return absl::StrCat("exited with code ", WEXITSTATUS(wait_status));
}

std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last;
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

LocalStages::LocalStages(const LaunchOptions& options) : options_(options) {
  processes_.resize(options.stages);
  process_fds_.resize(options.stages, -1);
  ready_fds_.resize(options.stages, -1);
  addresses_.resize(options.stages);
}

absl::StatusOr<std::unique_ptr<LocalStages>> LocalStages::Start(const LaunchOptions& options) {
  auto stages = std::unique_ptr<LocalStages>(new LocalStages(options));
  if (!options.tcp) RETURN_IF_ERROR(stages->MakeSocketFolder());
  if (pipe2(stages->lifeline_, O_CLOEXEC) != 0) return SystemError("cannot make a pipe");
  for (int i = 0; i < options.stages; ++i) RETURN_IF_ERROR(stages->Spawn(i));
  const SteadyTime deadline = SteadyTime::Now() + options.patience;
  for (int i = 0; i < options.stages; ++i) RETURN_IF_ERROR(stages->AwaitReady(i, deadline));
  return stages;
}

absl::Status LocalStages::MakeSocketFolder() {
  const char* place = getenv("TMPDIR");
  std::string folder = place != nullptr && *place != 0 ? place : "/tmp";
  const std::string name = "/thinwire-XXXXXX";
  const size_t longest = folder.size() + name.size() + strlen("/stage-9999.sock") + 1;
  if (longest > kSocketPathBytes || folder.find_first_not_of(kPlainInUri) != folder.npos) {
    folder = "/tmp";
  }
  folder += name;
  if (mkdtemp(folder.data()) == nullptr) {  // mode 0700
    return SystemError(absl::StrCat("cannot make a folder for the sockets at ", folder));
  }
  socket_dir_ = folder;
  return absl::OkStatus();
}

absl::Status LocalStages::Spawn(int stage) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return SystemError("cannot make a pipe");
  ready_fds_[stage] = ready[0];
  const std::string log = absl::StrCat(options_.logs_dir, "/stage-", stage, ".log");
  ChildPlan plan;
  plan.null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  plan.log_fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (plan.log_fd < 0) {
    const absl::Status status = SystemError(absl::StrCat(log, ": cannot open"));
    for (int fd : {plan.null_fd, ready[1]}) close(fd);
    return status;
  }
  plan.lifeline_fd = lifeline_[0];
  plan.ready_fd = ready[1];
  plan.arguments = {options_.binary,
                    options_.tcp
                        ? "--listen=127.0.0.1:0"
                        : absl::StrCat("--listen=unix:", socket_dir_, "/stage-", stage, ".sock"),
                    "--metrics_listen=127.0.0.1:0", absl::StrCat("--ready_fd=", plan.ready_fd),
                    absl::StrCat("--lifeline_fd=", plan.lifeline_fd)};
  if (!options_.cuda_plugin.empty()) {
    plan.arguments.push_back(absl::StrCat("--cuda_plugin=", options_.cuda_plugin));
  }
  plan.environment = ChildEnvironment(options_.threads);
  const std::vector<char*> arguments = ChildPlan::Pointers(&plan.arguments);
  const std::vector<char*> environment = ChildPlan::Pointers(&plan.environment);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) Become(plan, arguments.data(), environment.data(), parent);
  const absl::Status status =
      child > 0 ? absl::OkStatus() : SystemError(absl::StrCat("cannot start stage ", stage));
  for (int fd : {plan.null_fd, plan.log_fd, ready[1]}) close(fd);
  if (child < 0) return status;
  setpgid(child, child);  // here as well: whoever comes first
  processes_[stage] = child;
  process_fds_[stage] = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
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
      return absl::DeadlineExceededError(absl::StrCat("stage ", stage, " does not serve after ",
                                                      absl::FormatDuration(options_.patience),
                                                      "; see ", options_.logs_dir));
    }
    if (entries[1].revents != 0) return absl::CancelledError("interrupted");
    char buffer[512];
    const ssize_t bytes = read(ready_fds_[stage], buffer, sizeof(buffer));
    if (bytes <= 0) {
      if (Readable(process_fds_[stage], absl::Seconds(1))) return HowItEnded(stage);
      return absl::InternalError(absl::StrCat("stage ", stage, " did not say where it serves"));
    }
    line.append(buffer, static_cast<size_t>(bytes));
  }
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.value("listen", nlohmann::json()).is_string() ||
      !json.value("metrics", nlohmann::json("")).is_string()) {
    return absl::InternalError(
        absl::StrCat("stage ", stage, " said \"", line, "\", want {\"listen\":…,\"metrics\":…}"));
  }
  addresses_[stage] = {json["listen"], json.value("metrics", "")};
  return absl::OkStatus();
}

absl::Status LocalStages::HowItEnded(int stage) {
  const pid_t process = std::exchange(processes_[stage], 0);
  int wait_status = 0;
  waitpid(process, &wait_status, 0);
  std::string message =
      absl::StrCat("stage ", stage, " (process ", process, ") ", thinwire::HowItEnded(wait_status));
  const std::string log = absl::StrCat(options_.logs_dir, "/stage-", stage, ".log");
  const std::string last = LastLine(log);
  if (last.empty()) {
    absl::StrAppend(&message, "; it logged nothing");
  } else {
    absl::StrAppend(&message, "; the end of ", log, ": ", last);
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
  for (int fd : process_fds_) entries.push_back({fd, POLLIN, 0});
  entries.push_back({stop_watching_[0], POLLIN, 0});
  while (true) {
    if (poll(entries.data(), entries.size(), /*timeout=*/-1) < 0) continue;  // EINTR
    if (entries.back().revents != 0) return;
    for (int i = 0; i < options_.stages; ++i) {
      if (entries[i].revents == 0) continue;
      entries[i].fd = -1;  // poll skips it
      on_death({i, Failure::Kind::kDead, HowItEnded(i)});
    }
  }
}

void LocalStages::Stop(absl::Duration grace) {
  for (int* fd : {&stop_watching_[1], &lifeline_[1]}) {
    if (*fd >= 0) close(std::exchange(*fd, -1));  // the reader sees the end of the pipe
  }
  if (watcher_.joinable()) watcher_.join();
  for (pid_t process : processes_) {
    if (process > 0) kill(-process, SIGTERM);
  }
  const SteadyTime deadline = SteadyTime::Now() + grace;
  for (int i = 0; i < options_.stages; ++i) {
    if (processes_[i] == 0) continue;
    if (!Readable(process_fds_[i], deadline - SteadyTime::Now())) {
      kill(-processes_[i], SIGKILL);
      Readable(process_fds_[i], kLastPatience);
    }
    waitpid(std::exchange(processes_[i], 0), nullptr, WNOHANG);
  }
  if (!socket_dir_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(std::exchange(socket_dir_, ""), ignored);
  }
}

LocalStages::~LocalStages() {
  Stop();
  for (const auto& fds : {process_fds_, ready_fds_}) {
    for (int fd : fds) {
      if (fd >= 0) close(fd);
    }
  }
  for (int fd : {lifeline_[0], stop_watching_[0]}) {
    if (fd >= 0) close(fd);
  }
}

}  // namespace thinwire
