#include "coordinator/sweep_command.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/status.h"
#include "config/experiment.h"
#include "coordinator/exit_code.h"
#include "coordinator/files/file_lock.h"
#include "coordinator/files/summary.h"
#include "coordinator/fleet/stage_addresses.h"
#include "coordinator/results/database.h"
#include "coordinator/results/outcome.h"
#include "coordinator/results/run_files.h"
#include "coordinator/run_process.h"
#include "coordinator/sweep/live_table.h"
#include "coordinator/sweep/pool.h"
#include "coordinator/sweep/rows.h"
#include "coordinator/sweep/standing.h"
#include "coordinator/sweep/sweep_file.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kRedraw = absl::Seconds(1);

struct PlannedRun {
  SweepRun run;
  Standing standing = Standing::kAbsent;
  std::optional<size_t>
      bound_to;  // the group of stage servers that it had, of those that are given
  bool is_running = false, has_failed = false;
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

std::string FolderOf(const std::string& dir, const std::string& run) {
  return absl::StrCat(dir, "/runs/", run);
}
std::string DatabaseOf(const std::string& dir) { return dir + "/results.sqlite"; }

class SweepLoop {
 public:
  SweepLoop(const SweepFlags& flags, std::string dir, std::vector<PlannedRun> runs,
            std::string baseline, ResultsDatabase* database, Interruption* interruption)
      : flags_(flags),
        dir_(std::move(dir)),
        runs_(std::move(runs)),
        baseline_(std::move(baseline)),
        database_(*database),
        interruption_(*interruption),
        pool_(Slots()),
        running_(Slots(), 0) {}

  int Run() {
    ReadBounds();
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].standing != Standing::kFinished) continue;
      Say(runs_[i].run.name, "was there");
      ++found_;
      Import(i);
    }
    while (!interruption_.seen()) {
      BeginWhatCan();
      if (pool_.idle()) break;
      if (const auto end = pool_.Wait(kRedraw, interruption_.fd())) End(*end);
      Draw();
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
  std::string Folder(const SweepRun& run) const { return FolderOf(dir_, run.name); }
  std::string Log(const SweepRun& run) const { return absl::StrCat(dir_, "/logs/", run.name); }

  static bool Waits(const PlannedRun& planned) {
    return planned.standing != Standing::kFinished && !planned.is_running && !planned.has_failed;
  }

  // A run that was killed goes on with the stage servers that it had, which its lease still binds:
  // the first of those, else the first that no other group of servers is bound to.
  std::optional<size_t> NextFor(size_t slot) const {
    std::optional<size_t> first;
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (!Waits(runs_[i])) continue;
      const std::optional<size_t>& bound = runs_[i].bound_to;
      if (bound == slot) return i;
      if (!bound && !first) first = i;
    }
    return first;
  }

  void BeginWhatCan() {
    for (size_t slot = 0; slot < pool_.slots(); ++slot) {
      std::optional<size_t> next;
      while (pool_.IsFree(slot) && (next = NextFor(slot))) Begin(*next, slot);
    }
  }

  // Where the stage servers of a run are kept.
  std::string StagesFile(const SweepRun& run) const {
    return absl::StrCat(dir_, "/experiments/", run.name, ".stages");
  }

  void ReadBounds() {
    for (PlannedRun& planned : runs_) {
      const auto stages = ReadFile(StagesFile(planned.run));
      if (planned.standing != Standing::kUnfinished || !stages.ok()) continue;
      const auto group = std::find(flags_.stages.begin(), flags_.stages.end(), *stages);
      if (group != flags_.stages.end()) planned.bound_to = group - flags_.stages.begin();
    }
  }

  // Where nothing is drawn.
  void Say(const std::string& run, const std::string& what) const {
    if (is_terminal_) return;
    std::printf("%s\n", PrintableLine(absl::StrCat(run, ": ", what)).c_str());
    std::fflush(stdout);
  }

  // A line for each run, on a terminal.
  void Draw() {
    winsize size = {};
    if (!is_terminal_ || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return;
    std::vector<LiveRow> rows;
    for (size_t i = 0; i < runs_.size(); ++i) {
      const SweepRun& run = runs_[i].run;
      const bool is_running = runs_[i].is_running;
      const char* state = is_running                                 ? "runs"
                          : runs_[i].standing == Standing::kFinished ? "done"
                          : runs_[i].has_failed                      ? "failed"
                                                                     : "waits";
      const bool has_begun = is_running || runs_[i].standing == Standing::kFinished;
      rows.push_back({run.name, state,
                      has_begun ? ProgressOf(Folder(run), Log(run), run.experiment.epochs()) : "",
                      is_running});
    }
    table_.Draw(LiveLines(rows, size.ws_col == 0 ? 80 : size.ws_col,
                          size.ws_row < 3 ? 2 : size.ws_row - 1u));
  }

  void Begin(size_t index, size_t slot) {
    const SweepRun& run = runs_[index].run;
    const std::string experiment = absl::StrCat(dir_, "/experiments/", run.name, ".yaml");
    absl::Status started = ReplaceFile(experiment, ToYaml(run.experiment));
    if (started.ok() && !flags_.stages.empty()) {
      started = ReplaceFile(StagesFile(run), flags_.stages[slot]);
    }
    if (started.ok()) {
      // A run begins where nothing stands, and goes on from its checkpoint where one does.
      const std::string stages = flags_.stages.empty() ? "" : flags_.stages[slot];
      started = pool_.Start(
          slot, run.name, RunArguments(experiment, Folder(run), stages, flags_.session), Log(run));
    }
    if (!started.ok()) return Fail(index, std::string(started.message()));
    running_[slot] = index;
    runs_[index].is_running = true;
    Say(run.name, absl::StrCat(runs_[index].standing == Standing::kAbsent ? "started" : "goes on",
                               ", ", index + 1, " of ", runs_.size()));
  }

  // A database that cannot be written fails the sweep, and no run: the next one imports.
  void Import(size_t index) {
    const SweepRun& run = runs_[index].run;
    const absl::Status status =
        TryImport({run.name, run.row, static_cast<int64_t>(index)}, Folder(run));
    if (status.ok() || absl::IsNotFound(status)) return;
    failures_.emplace_back("results of " + run.name, std::string(status.message()));
  }

  absl::Status TryImport(const RunPosition& position, const std::string& folder) {
    ASSIGN_OR_RETURN(const Summary summary, ReadSummary(folder));
    ASSIGN_OR_RETURN(const bool is_there, database_.Has(position, summary.provenance().finished()));
    if (is_there) return absl::OkStatus();
    ASSIGN_OR_RETURN(const RunFiles files, ReadRunFiles(folder));
    return database_.Replace(position, files);
  }

  void End(const PoolEnd& end) {
    PlannedRun& planned = runs_[running_[end.slot]];
    planned.is_running = false;
    Import(running_[end.slot]);
    const auto standing = StandingOf(Folder(planned.run), planned.run.experiment);
    if (end.wait_status == 0 && standing.ok() && *standing == Standing::kFinished) {
      planned.standing = Standing::kFinished;
      ++done_;
      return Say(planned.run.name, "done");
    }
    if (interruption_.seen()) return Say(planned.run.name, "interrupted");
    const std::string why = standing.ok() ? WhyRunFailed(end.wait_status, Log(planned.run))
                                          : std::string(standing.status().message());
    Fail(running_[end.slot], absl::StrCat(why, "; its log is ", Log(planned.run)));
  }

  void Fail(size_t index, const std::string& why) {
    Say(runs_[index].run.name, "failed: " + why);
    runs_[index].has_failed = true;
    failures_.emplace_back(runs_[index].run.name, why);
  }

  int Conclude() const {
    std::vector<Outcome> outcomes;
    for (const PlannedRun& planned : runs_) {
      const auto summary = ReadSummary(Folder(planned.run));
      if (planned.standing != Standing::kFinished || !summary.ok()) continue;
      const auto outcome = OutcomeOf(planned.run.row, *summary);
      if (outcome.ok()) outcomes.push_back(*outcome);
    }
    std::printf("%s%zu runs: %zu done, %zu were there, %zu failed; %s\n",
                OutcomeTable(outcomes, baseline_).c_str(), runs_.size(), done_, found_,
                runs_.size() - done_ - found_, PrintableLine(DatabaseOf(dir_)).c_str());
    for (const auto& [run, why] : failures_) {
      std::printf("%s\n", PrintableLine(absl::StrCat("failed: ", run, ": ", why)).c_str());
    }
    return failures_.empty() ? kExitDone : kExitFailed;
  }

  const SweepFlags& flags_;
  const std::string dir_;
  std::vector<PlannedRun> runs_;
  const std::string baseline_;
  ResultsDatabase& database_;
  Interruption& interruption_;
  const bool is_terminal_ = isatty(STDOUT_FILENO) != 0;
  LiveTable table_{stdout};
  Pool pool_;
  std::vector<size_t> running_;  // by slot: index of the run
  size_t found_ = 0, done_ = 0;
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
    ASSIGN_OR_RETURN(const Standing standing, StandingOf(FolderOf(dir, run.name), run.experiment));
    planned.push_back({std::move(run), standing, std::nullopt});
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
  ASSIGN_OR_RETURN(const int stages, StagesOfGroups(flags.stages));
  return ExpandRuns(sweep, flags.overrides, static_cast<uint32_t>(stages));
}

int ExportCommand(const std::string& dir) {
  const absl::StatusOr<std::string> is_there = ReadFile(DatabaseOf(dir));
  if (!is_there.ok()) {
    return Complain(
        absl::Status(is_there.status().code(), absl::StrCat("--export: no sweep stands in ", dir,
                                                            ": ", is_there.status().message())),
        kExitUsage);
  }
  const auto database = ResultsDatabase::Open(DatabaseOf(dir));
  if (!database.ok()) return Complain(database.status(), kExitFailed);
  const absl::Status exported = (*database)->ExportCsv(dir + "/csv");
  return exported.ok() ? PrintResult(dir + "/csv\n") : Complain(exported, kExitFailed);
}

}  // namespace

int SweepCommand(const SweepFlags& flags, Interruption* interruption) {
  if (flags.jobs > 1 && !flags.stages.empty()) {
    return Complain(absl::InvalidArgumentError("--jobs with --stages: a run at a time has each "
                                               "--stages, want it alone"),
                    kExitUsage);
  }
  if (!flags.export_kind.empty()) return ExportCommand(flags.file);
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
  const auto database = ResultsDatabase::Open(DatabaseOf(dir));
  if (!database.ok()) return Complain(database.status(), kExitFailed);
  const std::string baseline = sweep->baseline.empty() ? planned->front().run.row : sweep->baseline;
  return SweepLoop(flags, dir, *std::move(planned), baseline, database->get(), interruption).Run();
}

}  // namespace thinwire
