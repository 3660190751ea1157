#include "coordinator/sweep/pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "absl/time/clock.h"
#include "base/status.h"
#include "coordinator/fleet/child_process.h"

namespace thinwire {
namespace {

constexpr int kLookMilliseconds = 50;

int Reap(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

Pool::~Pool() {
  for (const pid_t child : children_) {
    if (child == 0) continue;
    kill(child, SIGKILL);
    Reap(child);
  }
}

bool Pool::idle() const {
  return std::all_of(children_.begin(), children_.end(), [](pid_t child) { return child == 0; });
}

absl::Status Pool::Start(size_t slot, const std::string& name,
                         const std::vector<std::string>& arguments, const std::string& log) {
  ChildOptions options;
  options.name = name;
  options.arguments = arguments;
  options.log = log;
  ASSIGN_OR_RETURN(children_[slot], StartChild(options));
  return absl::OkStatus();
}

void Pool::Signal(size_t slot, int signal) { kill(children_[slot], signal); }

std::optional<PoolEnd> Pool::Wait(absl::Duration patience, int interrupted) {
  const absl::Time end = absl::Now() + patience;
  while (true) {
    for (size_t slot = 0; slot < children_.size(); ++slot) {
      int status = 0;
      if (children_[slot] == 0 || waitpid(children_[slot], &status, WNOHANG) != children_[slot]) {
        continue;
      }
      children_[slot] = 0;
      return PoolEnd{slot, status};
    }
    if (absl::Now() >= end) return std::nullopt;
    pollfd signal = {interrupted, POLLIN, 0};
    if (poll(&signal, 1, kLookMilliseconds) > 0) return std::nullopt;
  }
}

std::vector<PoolEnd> Pool::EndAll() {
  for (const pid_t child : children_) {
    if (child != 0) kill(child, SIGTERM);
  }
  std::vector<PoolEnd> ends;
  for (size_t slot = 0; slot < children_.size(); ++slot) {
    if (children_[slot] == 0) continue;
    ends.push_back({slot, Reap(children_[slot])});
    children_[slot] = 0;
  }
  return ends;
}

}  // namespace thinwire
