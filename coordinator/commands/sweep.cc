// `thinwire sweep`: several experiments, each with several seeds, one after the other or several at
// once, and what they give side by side.

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "config/run_name.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/fleet/stage_addresses.h"
#include "coordinator/results/database.h"
#include "coordinator/results/outcome.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/session.h"
#include "coordinator/sweep/sweep_file.h"
#include "coordinator/sweep/sweep_runs.h"

namespace thinwire {
namespace {

struct SweepFlags {
  std::string file;                    // of a sweep or an experiment
  std::vector<std::string> overrides;  // path=value, of all rows
  std::vector<std::string> grids;      // FIELD=VALUE,VALUE
  std::vector<std::string> seeds;
  std::string only;      // regular expression of the rows to run, whole names; empty: all
  std::string out;       // folder; empty: runs/NAME
  std::string baseline;  // row; empty: the sweep's, or the first
  int jobs = 1;          // runs at once, on this machine
  // "HOST:PORT,HOST:PORT": the stage servers of one run at a time; empty: stages are started here.
  std::vector<std::string> stages;
  bool list = false;        // says what stands, runs nothing
  std::string export_kind;  // "csv": of `file`, a sweep's folder, the tables; runs nothing
  // Without stages: `stages` names them.
  SessionOptions session;
};

constexpr char kSweepExamples[] =
    R"(FILE is a sweep, which names an experiment, rows, axes and seeds (docs/sweeps.md), or an
experiment, with --grid or --seeds. Each run has a folder, OUT/runs/ROW-seedN. The same command
goes on after any interruption: what is finished stays, what is not goes on from its checkpoint.

Examples:
  thinwire sweep experiments/sweeps/codecs.yaml --out runs/codecs
  thinwire sweep experiments/quickstart.yaml --seeds 1,2,3 --out runs/ratios \
      --grid compression.activations.ratio=0.5,0.1,0.02 --grid optimizer.lr=0.05,0.1
  thinwire sweep my.yaml --jobs 2 --set pipeline.threads=1
  thinwire sweep my.yaml --stages a:4700,b:4700 --stages c:4700,d:4700
  thinwire sweep my.yaml --only 'none|topk.*' --list
  thinwire sweep --export csv runs/my
Exit codes: 0 done, 1 a run failed, 2 wrong usage or a row is refused, 130 interrupted.
)";

absl::StatusOr<Sweep> Described(const SweepFlags& flags) {
  ASSIGN_OR_RETURN(Sweep sweep, ReadSweep(flags.file));
  for (const std::string& grid : flags.grids) RETURN_IF_ERROR(AddGrid(grid, &sweep));
  if (!flags.seeds.empty()) RETURN_IF_ERROR(SetSeeds(flags.seeds, &sweep));
  if (!flags.baseline.empty()) sweep.baseline = flags.baseline;
  return sweep;
}

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

std::string Listed(const std::vector<PlannedRun>& runs) {
  std::string text;
  for (const PlannedRun& planned : runs) {
    absl::StrAppend(&text, planned.run.name, ": ", Word(planned.standing), "\n");
  }
  return text;
}

absl::StatusOr<std::vector<SweepRun>> RunsOf(const SweepFlags& flags, const Sweep& sweep) {
  ASSIGN_OR_RETURN(const int stages, StagesOfGroups(flags.stages));
  ASSIGN_OR_RETURN(std::vector<SweepRun> runs,
                   ExpandRuns(sweep, flags.overrides, static_cast<uint32_t>(stages)));
  if (!flags.only.empty()) RETURN_IF_ERROR(KeepOnly(flags.only, &runs));
  return runs;
}

// Returns the sweep's folder. Its name must be a possible run name, as it names a folder as well.
absl::StatusOr<std::string> FolderOf(const SweepFlags& flags, const Sweep& sweep) {
  if (!flags.out.empty()) return flags.out;
  const absl::Status named = CheckRunName(sweep.name);
  if (named.ok()) return "runs/" + sweep.name;
  return absl::Status(named.code(), absl::StrCat(flags.file, ": ", named.message(), "; or --out"));
}

int ExportCommand(const std::string& dir) {
  const absl::StatusOr<std::string> is_there = ReadFile(DatabaseOf(dir));
  if (!is_there.ok()) {
    return Complain(
        Annotated(is_there.status(), absl::StrCat("--export: no sweep stands in ", dir)),
        kExitUsage);
  }
  const auto database = ResultsDatabase::Open(DatabaseOf(dir));
  if (!database.ok()) return Complain(database.status(), kExitFailed);
  const absl::Status exported = (*database)->ExportCsv(dir + "/csv");
  return exported.ok() ? PrintResult(dir + "/csv\n") : Complain(exported, kExitFailed);
}

int Conclude(const SweptRuns& swept, size_t runs, const std::string& baseline,
             const std::string& dir) {
  std::printf("%s%zu runs: %zu done, %zu were there, %zu failed; %s\n",
              OutcomeTable(swept.outcomes, baseline).c_str(), runs, swept.done, swept.found,
              runs - swept.done - swept.found, PrintableLine(DatabaseOf(dir)).c_str());
  for (const auto& [run, why] : swept.failures) {
    std::printf("%s\n", PrintableLine(absl::StrCat("failed: ", run, ": ", why)).c_str());
  }
  return swept.failures.empty() ? kExitDone : kExitFailed;
}

int SweepCommand(const SweepFlags& flags, Interruption* interruption) {
  const absl::Status jobs = CheckJobs(flags.jobs, flags.stages);
  if (!jobs.ok()) return Complain(jobs, kExitUsage);
  if (!flags.export_kind.empty()) return ExportCommand(flags.file);
  const absl::StatusOr<Sweep> sweep = Described(flags);
  if (!sweep.ok()) return Complain(sweep.status(), kExitUsage);
  auto runs = RunsOf(flags, *sweep);
  if (!runs.ok()) return Complain(runs.status(), kExitUsage);
  const absl::StatusOr<std::string> folder = FolderOf(flags, *sweep);
  if (!folder.ok()) return Complain(folder.status(), kExitUsage);
  const std::string& dir = *folder;
  if (flags.list) {
    const auto planned = PlanRuns(dir, *std::move(runs));
    return planned.ok() ? PrintResult(Listed(*planned)) : Complain(planned.status(), kExitUsage);
  }
  const auto lock = TakeSweepFolder(dir);
  if (!lock.ok()) return Complain(lock.status(), ExitOfPath(lock.status()));
  const std::string baseline = sweep->baseline.empty() ? runs->front().row : sweep->baseline;
  const size_t all = runs->size();
  const auto swept =
      RunSweep({dir, flags.jobs, flags.stages, flags.session}, *std::move(runs), interruption);
  if (absl::IsCancelled(swept.status())) return Complain(swept.status(), kExitInterrupted);
  if (absl::IsFailedPrecondition(swept.status())) return Complain(swept.status(), kExitFailed);
  if (!swept.ok()) return Complain(swept.status(), kExitUsage);
  return Conclude(*swept, all, baseline, dir);
}

}  // namespace

Command AddSweep(CLI::App* app) {
  const auto flags = std::make_shared<SweepFlags>();
  CLI::App* sweep =
      app->add_subcommand("sweep", "run several experiments with several seeds; compare them");
  sweep->footer(kSweepExamples);
  sweep->add_option("FILE", flags->file, "sweep or experiment file (YAML)")
      ->required()
      ->transform(kPath);
  AddOverrides(sweep, &flags->overrides);
  sweep
      ->add_option("--grid", flags->grids,
                   "an axis, FIELD=VALUE,VALUE: each row with each value; may stand often")
      ->allow_extra_args(false);
  sweep->add_option("--seeds", flags->seeds, "as 1,2,3 (default: the sweep's or the experiment's)")
      ->delimiter(',')
      ->allow_extra_args(false);
  sweep->add_option("--only", flags->only,
                    "rows whose whole name matches this regular expression (default: all)");
  sweep->add_option("--out", flags->out, "folder of the sweep (default: runs/NAME)")
      ->transform(kPath);
  sweep->add_option("--baseline", flags->baseline,
                    "row that the others are compared to (default: the sweep's, or the first)");
  AddJobs(sweep, &flags->jobs);
  sweep->add_flag("--list", flags->list, "print what is done and what is missing, run nothing");
  sweep
      ->add_option("--export", flags->export_kind,
                   "csv: write the tables of results.sqlite of the sweep in the folder FILE to "
                   "FILE/csv, run nothing")
      ->check(CLI::IsMember({"csv"}));
  AddStageGroups(sweep, &flags->stages);
  AddStagesWait(sweep, &flags->session);
  AddSecurity(sweep, &flags->session.security);
  AddLaunch(sweep, &flags->session);
  return {sweep,
          [flags](Interruption* interruption) { return SweepCommand(*flags, interruption); }};
}

}  // namespace thinwire
