#include "coordinator/conformance_command.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/conformance.h"
#include "compress/cpu/kernels.h"
#include "compress/plugin.h"
#include "coordinator/exit_code.h"
#include "coordinator/file.h"

namespace thinwire {
namespace {

constexpr unsigned kPatienceSeconds = 120;

struct Outcome {
  bool passed = false;
  std::string seen;
};

// In the child: "+" or "-" and what was seen.
[[noreturn]] void Report(const ConformanceCheck& check, int to) {
  alarm(kPatienceSeconds);
  const absl::StatusOr<std::string> seen = check.run();
  const std::string text = seen.ok() ? "+" + *seen : "-" + std::string(seen.status().message());
  _exit(WriteAll(to, "pipe", text).ok() ? 0 : 1);
}

std::string ReadAll(int file) {
  std::string text;
  char piece[4096];
  for (;;) {
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

Outcome RunInChild(const ConformanceCheck& check) {
  int ends[2];
  if (pipe(ends) != 0) return {false, absl::StrCat("no pipe: ", strerror(errno))};
  const pid_t child = fork();
  if (child == 0) Report(check, ends[1]);
  close(ends[1]);
  const std::string text = child < 0 ? "" : ReadAll(ends[0]);
  close(ends[0]);
  if (child < 0) return {false, absl::StrCat("no process: ", strerror(errno))};
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0 || text.empty()) return {false, DeathOf(status)};
  return {text[0] == '+', text.substr(1)};
}

// True if it passed.
bool RunAndPrint(const ConformanceCheck& check) {
  std::fflush(stdout);  // or the child would print it again
  const Outcome outcome = RunInChild(check);
  std::printf("%s  %s%s%s\n", outcome.passed ? "PASS" : "FAIL", check.name.c_str(),
              outcome.seen.empty() ? "" : ": ", outcome.seen.c_str());
  return outcome.passed;
}

}  // namespace

int ConformanceCommand(const CodecSpec& spec) {
  std::printf("%s\n", CodecText(spec).c_str());
  // Making the checks tries the codec, so that this comes in a child first.
  const ConformanceCheck takes_tensors = {
      "takes tensors of a usual shape", [&spec]() -> absl::StatusOr<std::string> {
        RETURN_IF_ERROR(ConformanceChecks(spec, CpuCodecKernels()).status());
        return std::string();
      }};
  if (!RunAndPrint(takes_tensors)) return kExitFailed;
  const auto checks = ConformanceChecks(spec, CpuCodecKernels());
  if (!checks.ok()) return kExitFailed;
  int failed = 0;
  for (const ConformanceCheck& check : *checks) failed += RunAndPrint(check) ? 0 : 1;
  std::printf("%d of %d checks failed\n", failed, static_cast<int>(checks->size()) + 1);
  return failed == 0 ? kExitDone : kExitFailed;
}

}  // namespace thinwire
