#include "coordinator/commands/sweep_command.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "config/run_name.h"
#include "coordinator/fleet/stage_addresses.h"
#include "coordinator/results/database.h"
#include "coordinator/results/outcome.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/sweep/rows.h"
#include "coordinator/sweep/standing.h"
#include "coordinator/sweep/sweep_file.h"
#include "coordinator/sweep/sweep_runs.h"

namespace thinwire {
namespace {

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
        absl::Status(is_there.status().code(), absl::StrCat("--export: no sweep stands in ", dir,
                                                            ": ", is_there.status().message())),
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

}  // namespace thinwire
