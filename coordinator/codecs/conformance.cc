#include "coordinator/codecs/conformance.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "compress/checks/conformance.h"
#include "compress/codecs/plugin.h"
#include "compress/cpu/kernels.h"

namespace thinwire {
namespace {

constexpr unsigned kPatienceSeconds = 120;

struct Outcome {
  bool passed = false;
  std::string seen;
};

// Runs a check in the child and writes "+" or "-" and its message.
[[noreturn]] void Report(const ConformanceCheck& check, pid_t parent, int to) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);  // so that the terminal's Ctrl-C reaches only the parent
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before prctl
  alarm(kPatienceSeconds);
  const absl::StatusOr<std::string> seen = check.run();
  const std::string text = seen.ok() ? "+" + *seen : "-" + std::string(seen.status().message());
  _exit(WriteAll(to, "pipe", text).ok() ? 0 : 1);
}

// Reads all of `file`. Cancelled once `interrupt_fd` is readable.
absl::StatusOr<std::string> ReadAll(int file, int interrupt_fd) {
  std::string text;
  char piece[4096];
  for (;;) {
    pollfd entries[] = {{file, POLLIN, 0}, {interrupt_fd, POLLIN, 0}};
    if (poll(entries, 2, /*timeout=*/-1) < 0) continue;  // EINTR
    if (entries[1].revents != 0) return absl::CancelledError("interrupted");
    const ssize_t n = read(file, piece, sizeof(piece));
    if (n > 0) text.append(piece, static_cast<size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) return text;
  }
}

std::string DeathOf(int status) {
  if (!WIFSIGNALED(status)) return absl::StrCat("exited with code ", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGALRM) return absl::StrCat("still ran after ", kPatienceSeconds, " s");
  return absl::StrCat("crashed: ", strsignal(WTERMSIG(status)));
}

// Runs a check in a child. Cancelled once `interrupt_fd` is readable; the child has ended then,
// too.
absl::StatusOr<Outcome> CheckInChild(const ConformanceCheck& check, int interrupt_fd) {
  int ends[2];
  if (pipe(ends) != 0) return absl::ErrnoToStatus(errno, "no pipe");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) Report(check, parent, ends[1]);
  close(ends[1]);
  const absl::StatusOr<std::string> text =
      child > 0 ? ReadAll(ends[0], interrupt_fd) : absl::ErrnoToStatus(errno, "no process");
  close(ends[0]);
  if (child < 0) return text.status();
  if (!text.ok()) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text.ok()) return text.status();
  if (status != 0 || text->empty()) return Outcome{false, DeathOf(status)};
  return Outcome{text->front() == '+', text->substr(1)};
}

absl::Status Print(const std::string& line) {
  return WriteAll(STDOUT_FILENO, "stdout", line + "\n");
}

// Returns true if the check passed.
absl::StatusOr<bool> CheckAndPrint(const ConformanceCheck& check, int interrupt_fd) {
  ASSIGN_OR_RETURN(const Outcome outcome, CheckInChild(check, interrupt_fd));
  RETURN_IF_ERROR(Print(absl::StrCat(outcome.passed ? "PASS  " : "FAIL  ", check.name,
                                     outcome.seen.empty() ? "" : ": ", outcome.seen)));
  return outcome.passed;
}

}  // namespace

absl::StatusOr<bool> PrintConformance(const CodecSpec& spec, int interrupt_fd) {
  RETURN_IF_ERROR(Print(CodecText(spec)));
  // Making the checks already uses the codec, so this is tried in a child first.
  const ConformanceCheck takes_tensors = {
      "takes tensors of a usual shape", [&spec]() -> absl::StatusOr<std::string> {
        RETURN_IF_ERROR(ConformanceChecks(spec, CpuCodecKernels()).status());
        return std::string();
      }};
  ASSIGN_OR_RETURN(const bool takes, CheckAndPrint(takes_tensors, interrupt_fd));
  if (!takes) return false;
  ASSIGN_OR_RETURN(const auto checks, ConformanceChecks(spec, CpuCodecKernels()));
  int failed = 0;
  for (const ConformanceCheck& check : checks) {
    ASSIGN_OR_RETURN(const bool passed, CheckAndPrint(check, interrupt_fd));
    failed += passed ? 0 : 1;
  }
  RETURN_IF_ERROR(Print(absl::StrCat(failed, " of ", checks.size() + 1, " checks failed")));
  return failed == 0;
}

}  // namespace thinwire
