#include "coordinator/fleet/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr int kExecFailed = 127;
constexpr std::streamoff kTailBytes = 8192;

// All that the child needs between fork and exec, prepared before, as it must not allocate there.
struct ChildPlan {
  std::vector<char*> arguments, environment;  // end with null
  int null_fd = -1, log_fd = -1;
  const std::vector<int>& inherited_fds;
};

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  for (std::string& s : *strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

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
  // A stage's threads must not spin while they wait: another stage may need the core.
  environment.push_back("OMP_WAIT_POLICY=PASSIVE");
  return environment;
}

// Runs in the child, which may use async-signal-safe calls only.
[[noreturn]] void Become(const ChildPlan& plan, pid_t parent) {
  // This process blocks or ignores some signals, which the child would inherit through execve.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExecFailed);  // the parent died before prctl
  dup2(plan.null_fd, STDIN_FILENO);
  dup2(plan.log_fd, STDOUT_FILENO);
  dup2(plan.log_fd, STDERR_FILENO);
  for (int fd : plan.inherited_fds) fcntl(fd, F_SETFD, 0);
  execve(plan.arguments[0], plan.arguments.data(), plan.environment.data());
  const char* reason = strerrordesc_np(errno);
  const char prefix[] = "cannot execute: ";
  if (write(STDERR_FILENO, prefix, sizeof(prefix) - 1) > 0) {
    if (write(STDERR_FILENO, reason, strlen(reason)) > 0) _exit(kExecFailed);
  }
  _exit(kExecFailed);
}

}  // namespace

absl::StatusOr<pid_t> StartChild(const ChildOptions& options) {
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = ChildEnvironment(options.threads);
  const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int log_fd = open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log_fd < 0) {
    const int error = errno;
    close(null_fd);
    return absl::ErrnoToStatus(error, absl::StrCat(options.log, ": cannot open"));
  }
  const ChildPlan plan = {Pointers(&arguments), Pointers(&environment), null_fd, log_fd,
                          options.inherited_fds};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) Become(plan, parent);
  const int error = errno;
  for (int fd : {null_fd, log_fd}) close(fd);
  if (child < 0) return absl::ErrnoToStatus(error, "cannot start " + options.name);
  setpgid(child, child);  // both processes do it, as either may be first
  return child;
}

std::string HowItEnded(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return absl::StrCat("was killed by signal ", signal, " (", strsignal(signal), ")");
  }
  return absl::StrCat("exited with code ", WEXITSTATUS(wait_status));
}

std::vector<std::string> LastLines(const std::string& path, int count) {
  std::ifstream file(path, std::ios::ate);
  const std::streamoff bytes = file.tellg();
  const bool is_cut = bytes > kTailBytes;
  file.seekg(is_cut ? bytes - kTailBytes : 0);
  std::vector<std::string> last;
  std::string line;
  if (is_cut) std::getline(file, line);  // its beginning is missing
  while (std::getline(file, line)) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last.push_back(line);
  }
  const size_t extra = last.size() - std::min(last.size(), static_cast<size_t>(count));
  last.erase(last.begin(), last.begin() + static_cast<std::ptrdiff_t>(extra));
  return last;
}

}  // namespace thinwire
