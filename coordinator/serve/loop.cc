#include "coordinator/serve/loop.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "base/text.h"
#include "coordinator/files/summary.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/run_process.h"
#include "coordinator/sweep/pool.h"

namespace thinwire {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(100);
// A run that was asked to end writes a checkpoint; one that does not end is ended.
constexpr absl::Duration kEndPatience = absl::Seconds(60);
constexpr int kSignalled = 128;  // plus the signal's number, as in shells

// Returns the exit code of `thinwire run`, or that of the signal that ended it.
int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? kSignalled + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::optional<TestRecord> LastTest(const std::string& folder) {
  const absl::StatusOr<Summary> summary = ReadSummary(folder);
  if (!summary.ok()) return std::nullopt;
  std::optional<TestRecord> last;
  for (const EpochRecord& epoch : summary->epochs()) {
    if (epoch.has_test()) last = epoch.test();
  }
  return last;
}

// Works off the queue, with one run in each slot: on this machine, or on a group of stage servers.
class ServeLoop {
 public:
  ServeLoop(const ServeOptions& options, const QueueLimits& limits, RunQueue* queue,
            QueueMetrics* metrics, Interruption* interruption)
      : options_(options),
        limits_(limits),
        queue_(*queue),
        metrics_(*metrics),
        interruption_(*interruption),
        pool_(limits.groups.empty() ? static_cast<size_t>(options.jobs) : limits.groups.size()),
        running_(pool_.slots()) {}

  void Run() {
    while (!interruption_.seen()) {
      BeginWhatCan();
      EndWhatIsCancelled();
      metrics_.Show(queue_.Count());
      if (const auto end = pool_.Wait(kLookEvery, interruption_.fd())) End(*end);
    }
    for (const PoolEnd& end : pool_.EndAll()) End(end);
  }

 private:
  struct Running {
    std::string run;
    std::optional<SteadyTime> asked;  // when it was asked to end
  };

  static void Say(const std::string& line) {
    std::printf("%s\n", PrintableLine(line).c_str());
    std::fflush(stdout);
  }

  void BeginWhatCan() {
    absl::Status room = CheckRoom(limits_);
    for (size_t slot = 0; slot < pool_.slots() && room.ok(); ++slot) {
      while (pool_.IsFree(slot) && room.ok()) {
        const auto next =
            queue_.Begin(limits_.groups.empty() ? "" : limits_.groups[slot], limits_.groups);
        room = next.status();
        if (!next.ok() || !*next) break;
        Begin(**next, slot);
      }
    }
    const std::string held(room.message());
    if (held.empty() != held_.empty()) Say(held.empty() ? "goes on" : "held: " + held);
    held_ = held;
    queue_.Hold(held_);
  }

  absl::Status Start(const QueueEntry& entry, size_t slot) {
    const std::string folder = queue_.FolderOf(entry.run());
    const std::string experiment = queue_.ExperimentOf(entry.run());
    RETURN_IF_ERROR(ReplaceFile(experiment, entry.experiment()));
    unlink((folder + "/targets.json").c_str());  // left by a killed process
    std::vector<std::string> arguments =
        RunArguments(experiment, folder, entry.stages(), options_.session);
    if (options_.metrics_linger_seconds > 0) {
      arguments.insert(arguments.end(),
                       {"--metrics_linger", absl::StrCat(options_.metrics_linger_seconds)});
    }
    return pool_.Start(slot, entry.run(), arguments, queue_.LogOf(entry.run()));
  }

  void Begin(const QueueEntry& entry, size_t slot) {
    const bool goes_on = std::filesystem::exists(queue_.FolderOf(entry.run()));
    const absl::Status started = Start(entry, slot);
    if (!started.ok()) {
      return Tell(entry.run(), {kExitFailed, std::string(started.message()), std::nullopt});
    }
    running_[slot] = {entry.run(), std::nullopt};
    metrics_.Begun(entry.run(), queue_.FolderOf(entry.run()));
    Say(absl::StrCat(entry.run(), goes_on ? ": goes on" : ": started",
                     entry.stages().empty() ? "" : " on ", entry.stages()));
  }

  void EndWhatIsCancelled() {
    for (size_t slot = 0; slot < pool_.slots(); ++slot) {
      Running& running = running_[slot];
      if (pool_.IsFree(slot) || !queue_.IsCancelled(running.run)) continue;
      if (!running.asked) {
        running.asked = SteadyTime::Now();
        pool_.Signal(slot, SIGTERM);
      } else if (SteadyTime::Now() - *running.asked > kEndPatience) {
        pool_.Signal(slot, SIGKILL);
      }
    }
  }

  // Handles the end of a run. One that ends only because this server does has not reached its own
  // end.
  void End(const PoolEnd& end) {
    const std::string run = running_[end.slot].run;
    metrics_.Ended(run);
    RunEnd how;
    how.exit_code = ExitCodeOf(end.wait_status);
    const bool is_mine = interruption_.seen() && !queue_.IsCancelled(run) &&
                         (how.exit_code == kExitInterrupted || WIFSIGNALED(end.wait_status));
    if (is_mine) {
      queue_.Suspend(run);
      return Say(run + ": waits for the next server");
    }
    how.test = LastTest(queue_.FolderOf(run));
    if (how.exit_code == kExitInterrupted) {
      how.error = queue_.IsCancelled(run) ? "" : "was interrupted";
    } else if (how.exit_code != kExitDone) {
      how.error = WhyRunFailed(end.wait_status, queue_.LogOf(run));
    }
    Tell(run, how);
  }

  void Tell(const std::string& run, const RunEnd& how) {
    const absl::Status written = queue_.End(run, how);
    const auto status = queue_.Find(run);
    if (status.ok()) {
      Say(absl::StrCat(run, ": ", status->state(), how.error.empty() ? "" : ": ", how.error));
    }
    if (!written.ok()) Say(absl::StrCat("cannot keep the end of ", run, ": ", written.message()));
  }

  const ServeOptions& options_;
  const QueueLimits& limits_;
  RunQueue& queue_;
  QueueMetrics& metrics_;
  Interruption& interruption_;
  Pool pool_;
  std::vector<Running> running_;  // by slot
  std::string held_;              // why no run begins
};

}  // namespace

void WorkOff(const ServeOptions& options, const QueueLimits& limits, RunQueue* queue,
             QueueMetrics* metrics, Interruption* interruption) {
  ServeLoop(options, limits, queue, metrics, interruption).Run();
}

}  // namespace thinwire
