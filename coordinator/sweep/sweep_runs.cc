#include "coordinator/sweep/sweep_runs.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "config/differences.h"
#include "config/experiment.h"
#include "coordinator/files/folders.h"
#include "coordinator/files/summary.h"
#include "coordinator/results/database.h"
#include "coordinator/results/run_files.h"
#include "coordinator/session/run_process.h"
#include "coordinator/sweep/live_table.h"
#include "coordinator/sweep/pool.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

// Returns whether the last event of the summary is the run's early end.
bool HasStopped(const nlohmann::json& summary) {
  const auto events = summary.find("events");
  if (events == summary.end() || !events->is_array() || events->empty()) return false;
  return events->back().is_object() && events->back().value("type", nlohmann::json()) == kStopped;
}

// Returns whether the summary has all epochs, or as many as the run wanted in the end; one with
// fewer is from a run that was meant to be shorter.
bool IsComplete(const std::string& summary, uint32_t epochs) {
  const auto json = nlohmann::json::parse(summary, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  const auto status = json.find("status"), list = json.find("epochs");
  return status != json.end() && *status == "completed" && list != json.end() && list->is_array() &&
         (list->size() == epochs || HasStopped(json));
}

std::string Shown(const std::string& value) { return value.empty() ? "nothing" : value; }

constexpr absl::Duration kRedraw = absl::Seconds(1);

class SweepLoop {
 public:
  SweepLoop(const SweepPlace& place, std::vector<PlannedRun> runs, ResultsDatabase* database,
            Interruption* interruption)
      : place_(place),
        runs_(std::move(runs)),
        database_(*database),
        interruption_(*interruption),
        pool_(Slots()),
        running_(Slots(), 0) {}

  absl::StatusOr<SweptRuns> Run() {
    ReadBounds();
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].standing != Standing::kFinished) continue;
      Say(runs_[i].run.name, "was there");
      ++swept_.found;
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
    return absl::CancelledError("interrupted; the same command goes on");
  }

 private:
  size_t Slots() const {
    return place_.stages.empty() ? static_cast<size_t>(place_.jobs) : place_.stages.size();
  }
  std::string Folder(const SweepRun& run) const { return RunFolderOf(place_.dir, run.name); }
  std::string Log(const SweepRun& run) const {
    return absl::StrCat(place_.dir, "/logs/", run.name);
  }

  static bool Waits(const PlannedRun& planned) {
    return planned.standing != Standing::kFinished && !planned.is_running && !planned.has_failed;
  }

  // Returns the next run for a slot. A killed run continues with its former stage servers, which
  // its lease still binds. So the first run bound to this slot's servers is taken, else the first
  // that is bound to none.
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

  // Returns the file that keeps which stage servers a run has.
  std::string StagesFile(const SweepRun& run) const {
    return absl::StrCat(place_.dir, "/experiments/", run.name, ".stages");
  }

  void ReadBounds() {
    for (PlannedRun& planned : runs_) {
      const auto stages = ReadFile(StagesFile(planned.run));
      if (planned.standing != Standing::kUnfinished || !stages.ok()) continue;
      const auto group = std::find(place_.stages.begin(), place_.stages.end(), *stages);
      if (group != place_.stages.end()) planned.bound_to = group - place_.stages.begin();
    }
  }

  // Prints a line, unless a table is drawn.
  void Say(const std::string& run, const std::string& what) const {
    if (is_terminal_) return;
    std::fprintf(place_.said_to, "%s\n", PrintableLine(absl::StrCat(run, ": ", what)).c_str());
    std::fflush(place_.said_to);
  }

  // Draws a line for each run, on a terminal.
  void Draw() {
    winsize size = {};
    if (!is_terminal_ || ioctl(fileno(place_.said_to), TIOCGWINSZ, &size) != 0) return;
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
    const std::string experiment = absl::StrCat(place_.dir, "/experiments/", run.name, ".yaml");
    absl::Status started = ReplaceFile(experiment, ToYaml(run.experiment));
    if (started.ok() && !place_.stages.empty()) {
      started = ReplaceFile(StagesFile(run), place_.stages[slot]);
    }
    if (started.ok()) {
      // A new run begins; an unfinished one continues from its checkpoint.
      const std::string stages = place_.stages.empty() ? "" : place_.stages[slot];
      started = pool_.Start(
          slot, run.name, RunArguments(experiment, Folder(run), stages, place_.session), Log(run));
    }
    if (!started.ok()) return Fail(index, std::string(started.message()));
    running_[slot] = index;
    runs_[index].is_running = true;
    Say(run.name, absl::StrCat(runs_[index].standing == Standing::kAbsent ? "started" : "goes on",
                               ", ", index + 1, " of ", runs_.size()));
  }

  // Adds the run to the database. An error fails the sweep, but not the run: the next call imports
  // it.
  void Import(size_t index) {
    const SweepRun& run = runs_[index].run;
    const absl::Status status =
        TryImport({run.name, run.row, static_cast<int64_t>(index)}, Folder(run));
    if (status.ok() || absl::IsNotFound(status)) return;
    swept_.failures.emplace_back("results of " + run.name, std::string(status.message()));
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
      ++swept_.done;
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
    swept_.failures.emplace_back(runs_[index].run.name, why);
  }

  SweptRuns Conclude() {
    for (const PlannedRun& planned : runs_) {
      const auto summary = ReadSummary(Folder(planned.run));
      if (planned.standing != Standing::kFinished || !summary.ok()) continue;
      const auto outcome = OutcomeOf(planned.run.row, *summary);
      if (outcome.ok()) swept_.outcomes.push_back(*outcome);
    }
    return std::move(swept_);
  }

  const SweepPlace& place_;
  std::vector<PlannedRun> runs_;
  ResultsDatabase& database_;
  Interruption& interruption_;
  const bool is_terminal_ = isatty(fileno(place_.said_to)) != 0;
  LiveTable table_{place_.said_to};
  Pool pool_;
  std::vector<size_t> running_;  // by slot: index of the run
  SweptRuns swept_;
};

}  // namespace

absl::StatusOr<Standing> StandingOf(const std::string& folder, const Experiment& wanted) {
  const std::string path = folder + "/experiment.yaml";
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return Standing::kAbsent;
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(const Experiment there, ParseResolved(*text, path));
  const std::vector<FieldDifference> differences = Differences(there, wanted);
  if (!differences.empty()) {
    const FieldDifference& first = differences[0];
    return absl::InvalidArgumentError(absl::StrCat(
        folder, ": a run of another experiment stands here: ", first.path, " is ",
        Shown(first.left), ", want ", Shown(first.right),
        differences.size() == 1 ? ""
                                : absl::StrCat(", and ", differences.size() - 1, " more differ"),
        "; give the row another name, give another --out, or remove this folder"));
  }
  const absl::StatusOr<std::string> summary = ReadFile(folder + "/summary.json");
  if (absl::IsNotFound(summary.status())) return Standing::kUnfinished;
  RETURN_IF_ERROR(summary.status());
  return IsComplete(*summary, wanted.epochs()) ? Standing::kFinished : Standing::kUnfinished;
}

std::string RunFolderOf(const std::string& dir, const std::string& run) {
  return absl::StrCat(dir, "/runs/", run);
}
std::string DatabaseOf(const std::string& dir) { return dir + "/results.sqlite"; }

absl::StatusOr<std::vector<PlannedRun>> PlanRuns(const std::string& dir,
                                                 std::vector<SweepRun> runs) {
  std::vector<PlannedRun> planned;
  for (SweepRun& run : runs) {
    ASSIGN_OR_RETURN(const Standing standing,
                     StandingOf(RunFolderOf(dir, run.name), run.experiment));
    planned.push_back({std::move(run), standing});
  }
  return planned;
}

absl::StatusOr<std::unique_ptr<FileLock>> TakeSweepFolder(const std::string& dir) {
  for (const char* folder : {"/runs", "/logs", "/experiments"}) {
    RETURN_IF_ERROR(MakeFolder(dir + folder).status());
  }
  return FileLock::Take(dir + "/.sweep.lock");
}

absl::StatusOr<SweptRuns> RunSweep(const SweepPlace& place, std::vector<SweepRun> runs,
                                   Interruption* interruption) {
  ASSIGN_OR_RETURN(std::vector<PlannedRun> planned, PlanRuns(place.dir, std::move(runs)));
  const auto database = ResultsDatabase::Open(DatabaseOf(place.dir));
  if (!database.ok()) return absl::FailedPreconditionError(database.status().message());
  return SweepLoop(place, std::move(planned), database->get(), interruption).Run();
}

}  // namespace thinwire
