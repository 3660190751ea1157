#include "coordinator/session/program.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// Attributes like those that a shell gives: no signal is blocked or ignored.
class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none, ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &ignored);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

absl::StatusOr<pid_t> Start(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, pointers[0], nullptr, Attributes().get(), pointers.data(), environ);
  if (error == 0) return child;
  return absl::ErrnoToStatus(
      error, absl::StrCat("cannot start ", arguments[0], ", which has to be installed"));
}

}  // namespace

absl::StatusOr<int> RunProgram(const std::vector<std::string>& arguments,
                               Interruption* interruption) {
  const absl::StatusOr<pid_t> child = Start(arguments);
  if (!child.ok()) return child.status();
  interruption->OnFirst([pid = *child] { kill(pid, SIGTERM); });
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(*child), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  interruption->OnFirst({});  // waitpid frees the process id, which another process may get
  int status = 0;
  waitpid(*child, &status, 0);
  if (interruption->seen()) return absl::CancelledError("interrupted");
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace thinwire
