#include "coordinator/sweep_command.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/status.h"
#include "config/experiment.h"
#include "coordinator/exit_code.h"
#include "coordinator/files/file_lock.h"
#include "coordinator/fleet/child_process.h"
#include "coordinator/fleet/stage_addresses.h"
#include "coordinator/sweep/pool.h"
#include "coordinator/sweep/rows.h"
#include "coordinator/sweep/standing.h"
#include "coordinator/sweep/sweep_file.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

struct PlannedRun {
  SweepRun run;
  Standing standing = Standing::kAbsent;
};

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? FileError(path, "cannot make the folder", error.value()) : absl::OkStatus();
}

absl::StatusOr<Sweep> Described(const SweepFlags& flags) {
  ASSIGN_OR_RETURN(Sweep sweep, ReadSweep(flags.file));
  for (const std::string& grid : flags.grids) RETURN_IF_ERROR(AddGrid(grid, &sweep));
  if (!flags.seeds.empty()) RETURN_IF_ERROR(SetSeeds(flags.seeds, &sweep));
  if (!flags.baseline.empty()) sweep.baseline = flags.baseline;
  return sweep;
}

// Stages that each group of --stages names; 0 where none are named, or a range is open.
absl::StatusOr<uint32_t> StagesOfGroups(const std::vector<std::string>& groups) {
  uint32_t stages = 0;
  for (const std::string& group : groups) {
    ASSIGN_OR_RETURN(const StageAddresses named, StageAddresses::Parse(absl::StrSplit(group, ',')));
    const auto count = static_cast<uint32_t>(named.count().value_or(0));
    if (&group != &groups[0] && count != stages) {
      return absl::InvalidArgumentError(absl::StrCat("--stages ", group, ": names ", count,
                                                     " servers, want ", stages,
                                                     " as the first group has"));
    }
    stages = count;
  }
  return stages;
}

class SweepLoop {
 public:
  SweepLoop(const SweepFlags& flags, std::string dir, std::vector<PlannedRun> runs,
            Interruption* interruption)
      : flags_(flags),
        dir_(std::move(dir)),
        runs_(std::move(runs)),
        interruption_(*interruption),
        pool_(Slots()),
        running_(Slots(), 0) {}

  int Run() {
    for (const PlannedRun& planned : runs_) {
      if (planned.standing == Standing::kFinished) Say(planned.run.name, "was there");
    }
    size_t next = 0;
    while (!interruption_.seen()) {
      while (next < runs_.size() && runs_[next].standing == Standing::kFinished) ++next;
      const auto slot = pool_.FreeSlot();
      if (next < runs_.size() && slot) {
        Begin(next++, *slot);
      } else if (pool_.idle()) {
        break;
      } else if (const auto end = pool_.Wait(absl::InfiniteDuration(), interruption_.fd())) {
        End(*end);
      }
    }
    if (!interruption_.seen()) return Conclude();
    for (const PoolEnd& end : pool_.EndAll()) End(end);
    std::fprintf(stderr, "thinwire: interrupted; the same command goes on\n");
    return kExitInterrupted;
  }

 private:
  size_t Slots() const {
    return flags_.stages.empty() ? static_cast<size_t>(flags_.jobs) : flags_.stages.size();
  }
  std::string Folder(const SweepRun& run) const { return absl::StrCat(dir_, "/runs/", run.name); }
  std::string Log(const SweepRun& run) const { return absl::StrCat(dir_, "/logs/", run.name); }

  static void Say(const std::string& run, const std::string& what) {
    std::printf("%s\n", PrintableLine(absl::StrCat(run, ": ", what)).c_str());
    std::fflush(stdout);
  }

  void Begin(size_t index, size_t slot) {
    const SweepRun& run = runs_[index].run;
    const std::string experiment = absl::StrCat(dir_, "/experiments/", run.name, ".yaml");
    absl::Status started = ReplaceFile(experiment, ToYaml(run.experiment));
    if (started.ok()) {
      started = pool_.Start(slot, run.name, Arguments(experiment, run, slot), Log(run));
    }
    if (!started.ok()) return Fail(run, std::string(started.message()));
    running_[slot] = index;
    Say(run.name, absl::StrCat(runs_[index].standing == Standing::kAbsent ? "started" : "goes on",
                               ", ", index + 1, " of ", runs_.size()));
  }

  // A run begins where nothing stands, and goes on from its checkpoint where one does.
  std::vector<std::string> Arguments(const std::string& experiment, const SweepRun& run,
                                     size_t slot) const {
    std::vector<std::string> arguments = {"/proc/self/exe", "run", experiment, "--resume",
                                          Folder(run)};
    const auto add = [&](const char* flag, const std::string& value) {
      if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
    };
    add("--stage_server", flags_.session.stage_server);
    add("--cuda_plugin", flags_.session.cuda_plugin);
    if (flags_.session.allow_other_build) arguments.emplace_back("--allow_other_build");
    if (flags_.stages.empty()) return arguments;
    add("--stages", flags_.stages[slot]);
    add("--stages_wait", absl::StrCat(flags_.session.wait_seconds));
    const SecurityOptions& security = flags_.session.security;
    add("--tls_cert", security.tls_cert);
    add("--tls_key", security.tls_key);
    add("--tls_ca", security.tls_ca);
    add("--token_file", security.token_file);
    return arguments;
  }

  void End(const PoolEnd& end) {
    PlannedRun& planned = runs_[running_[end.slot]];
    const std::vector<std::string> last = LastLines(Log(planned.run), 1);
    const auto standing = StandingOf(Folder(planned.run), planned.run.experiment);
    if (end.wait_status == 0 && standing.ok() && *standing == Standing::kFinished) {
      planned.standing = Standing::kFinished;
      ++done_;
      return Say(planned.run.name, "done");
    }
    if (interruption_.seen()) return Say(planned.run.name, "interrupted");
    std::string why = HowItEnded(end.wait_status);
    if (!standing.ok()) why = std::string(standing.status().message());
    if (!last.empty()) absl::StrAppend(&why, ": ", last[0]);
    Fail(planned.run, absl::StrCat(why, "; its log is ", Log(planned.run)));
  }

  void Fail(const SweepRun& run, const std::string& why) {
    Say(run.name, "failed: " + why);
    failures_.emplace_back(run.name, why);
  }

  int Conclude() const {
    std::printf("%zu runs: %zu done, %zu were there, %zu failed; %s\n", runs_.size(), done_,
                runs_.size() - done_ - failures_.size(), failures_.size(), dir_.c_str());
    for (const auto& [run, why] : failures_) Say("failed: " + run, why);
    return failures_.empty() ? kExitDone : kExitFailed;
  }

  const SweepFlags& flags_;
  const std::string dir_;
  std::vector<PlannedRun> runs_;
  Interruption& interruption_;
  Pool pool_;
  std::vector<size_t> running_;  // by slot: index of the run
  size_t done_ = 0;
  std::vector<std::pair<std::string, std::string>> failures_;  // run, why
};

const char* Word(Standing standing) {
  switch (standing) {
    case Standing::kAbsent:
      return "missing";
    case Standing::kUnfinished:
      return "unfinished";
    case Standing::kFinished:
      return "done";
  }
  return "";
}

absl::StatusOr<std::vector<PlannedRun>> PlanRuns(const std::string& dir,
                                                 std::vector<SweepRun> runs) {
  std::vector<PlannedRun> planned;
  for (SweepRun& run : runs) {
    ASSIGN_OR_RETURN(const Standing standing,
                     StandingOf(absl::StrCat(dir, "/runs/", run.name), run.experiment));
    planned.push_back({std::move(run), standing});
  }
  return planned;
}

std::string Listed(const std::vector<PlannedRun>& runs) {
  std::string text;
  for (const PlannedRun& planned : runs) {
    absl::StrAppend(&text, planned.run.name, ": ", Word(planned.standing), "\n");
  }
  return text;
}

absl::StatusOr<std::vector<SweepRun>> RunsOf(const SweepFlags& flags, const Sweep& sweep) {
  ASSIGN_OR_RETURN(const uint32_t stages, StagesOfGroups(flags.stages));
  ASSIGN_OR_RETURN(std::vector<SweepRun> runs, ExpandRuns(sweep, flags.overrides, stages));
  return runs;
}

}  // namespace

int SweepCommand(const SweepFlags& flags, Interruption* interruption) {
  if (flags.jobs > 1 && !flags.stages.empty()) {
    return Complain(absl::InvalidArgumentError("--jobs with --stages: a run at a time has each "
                                               "--stages, want it alone"),
                    kExitUsage);
  }
  const absl::StatusOr<Sweep> sweep = Described(flags);
  if (!sweep.ok()) return Complain(sweep.status(), kExitUsage);
  auto runs = RunsOf(flags, *sweep);
  if (!runs.ok()) return Complain(runs.status(), kExitUsage);
  const std::string dir = flags.out.empty() ? "runs/" + sweep->name : flags.out;
  if (flags.list) {
    const auto planned = PlanRuns(dir, *std::move(runs));
    return planned.ok() ? PrintResult(Listed(*planned)) : Complain(planned.status(), kExitUsage);
  }
  for (const char* folder : {"/runs", "/logs", "/experiments"}) {
    const absl::Status made = MakeFolder(dir + folder);
    if (!made.ok()) return Complain(made, kExitFailed);
  }
  const auto lock = FileLock::Take(dir + "/.sweep.lock");
  if (!lock.ok()) return Complain(lock.status(), kExitUsage);
  auto planned = PlanRuns(dir, *std::move(runs));
  if (!planned.ok()) return Complain(planned.status(), kExitUsage);
  return SweepLoop(flags, dir, *std::move(planned), interruption).Run();
}

}  // namespace thinwire
