#include "coordinator/commands/run.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/host_port.h"
#include "base/status.h"
#include "base/text.h"
#include "config/adapter_config.h"
#include "config/experiment.h"
#include "config/kept.h"
#include "config/local_paths.h"
#include "config/tensor_parts.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/files/record.h"
#include "coordinator/plan/captured_outliers.h"
#include "coordinator/plan/state_plan.h"
#include "coordinator/plan/warnings.h"
#include "coordinator/run/fitted_stages.h"
#include "coordinator/run/model_files.h"
#include "coordinator/run/model_shares.h"
#include "coordinator/run/recorded_run.h"
#include "coordinator/run/restore.h"
#include "coordinator/run/resumable.h"
#include "coordinator/run/run_weights.h"
#include "coordinator/run/trace_recorder.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/trace/trace.h"

namespace thinwire {
namespace {

constexpr char kRunExamples[] = R"(Examples:
  thinwire run experiments/quickstart.yaml
  thinwire run experiments/quickstart.yaml --set compression.activations.codec=topk \
      --set compression.activations.ratio=0.1 --out runs/topk10
  thinwire run experiments/quickstart.yaml --stages a:4700,b:4700,c:4700,d:4700
  thinwire run experiments/quickstart.yaml --stages 'node{1..4}:4700' --stages_wait 300
  thinwire run experiments/replicas/shakespeare.yaml --carriers 2
  thinwire run experiments/replicas/shakespeare.yaml --stages 'r{0..3}s{0..3}:4700'
  thinwire run experiments/replicas/shakespeare.yaml --set membership.open=true \
      --stages 's{0..3}:4700' --listen 0.0.0.0:4600 --token_file token
  thinwire run --resume runs/quickstart --set epochs=20
  thinwire run --resume runs/quickstart@1200
  thinwire run experiments/quickstart.yaml --trace steps=10..12
Exit codes: 0 done, 1 run failed, 2 wrong usage or experiment file, 130 interrupted.
)";

void Tell(const std::string& line) {
  std::fprintf(stderr, "thinwire: %s\n", PrintableLine(line).c_str());
}

// A run that is to go on, as its last checkpoint has it.
struct Past {
  FoundCheckpoint checkpoint;
  Experiment experiment;
};

absl::StatusOr<Experiment> Load(const std::optional<Past>& past, RunFlags* flags) {
  RETURN_IF_ERROR(Annotated(ParseHostPort(flags->metrics_listen).status(), "--metrics_listen"));
  flags->session.takes_spares = true;
  return LoadForStages(flags->experiment, flags->overrides, &flags->session,
                       past ? &past->experiment : nullptr);
}

// Stages on this machine share its memory; of others' machines nothing is known here.
absl::Status CheckState(const RunFlags& flags, const Experiment& experiment) {
  ASSIGN_OR_RETURN(const StatePlan state, PlanState(experiment));
  if (!flags.session.stages.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckFolders(state));
  return CheckMemory(state, MachineMemoryBytes(), /*one_machine=*/true);
}

// Checks that stages can fit into a limit that is given; of others only servers know.
absl::Status CheckLimit(const RunFlags& flags, const Experiment& experiment) {
  ASSIGN_OR_RETURN(const auto limit, MemoryLimitFrom(experiment));
  if (!limit || !limit->bytes) return absl::OkStatus();
  const std::vector<int>& each = flags.session.stage_carriers;
  const int least = each.empty() ? std::max(1, flags.session.carriers)
                                 : *std::min_element(each.begin(), each.end());
  return FitToServers(experiment, least, {}, nullptr).status();
}

// Checks what the experiment starts from, which is read again when the stages are there.
absl::Status CheckInitial(const Experiment& experiment, bool quiet) {
  if (!experiment.has_init()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckInitialVocabulary(experiment));
  ASSIGN_OR_RETURN(const std::string other_base, OtherBaseOfAdapter(experiment));
  if (!other_base.empty() && !quiet) Tell("warning: " + other_base);
  if (StagesReadInit(experiment)) {
    return experiment.lora().has_init() ? ModelShares::InitialAdapter(experiment).status()
                                        : absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const ModelShares initial, ModelShares::Initial(experiment));
  if (initial.fresh().empty() || quiet) return absl::OkStatus();
  Tell(absl::StrCat("init: ", experiment.init(), " has nothing for ",
                    absl::StrJoin(initial.fresh(), ", "), ": these start anew"));
  return absl::OkStatus();
}

// Checks the flags that can only be wrong together.
absl::Status CheckUsage(const RunFlags& flags) {
  const bool names_a_folder = !flags.resume.empty() && flags.resume != kFolderOfName;
  if (flags.experiment.empty() && !names_a_folder) {
    return absl::InvalidArgumentError("no experiment, want EXPERIMENT or --resume DIR");
  }
  if (!flags.resume.empty() && (flags.overwrite || !flags.out.empty())) {
    return absl::InvalidArgumentError("--resume with --out or --overwrite, want it alone");
  }
  return absl::OkStatus();
}

// Tells the session how many machines there are for each stage.
absl::Status TakeCarriers(RunFlags* flags) {
  if (flags->carriers.empty()) return absl::OkStatus();
  std::vector<int> numbers;
  for (const absl::string_view text : absl::StrSplit(flags->carriers, ',')) {
    int number = 0;
    if (!absl::SimpleAtoi(text, &number) || number < 1 || number > kMostCarriers) {
      return absl::InvalidArgumentError(absl::StrCat("--carriers ", flags->carriers, ": \"", text,
                                                     "\", want a number from 1 to ", kMostCarriers,
                                                     ", or one for each stage"));
    }
    numbers.push_back(number);
  }
  flags->session.carriers = *std::max_element(numbers.begin(), numbers.end());
  if (numbers.size() > 1) flags->session.stage_carriers = std::move(numbers);
  return absl::OkStatus();
}

// Takes the step off "DIR@STEP".
absl::Status TakeStep(RunFlags* flags) {
  const RunAt at = ParseRunAt(flags->resume);
  if (!at.step) return absl::OkStatus();
  uint64_t step = 0;
  if (!absl::SimpleAtoi(*at.step, &step)) {
    return absl::InvalidArgumentError(absl::StrCat("--resume ", flags->resume, ": \"", *at.step,
                                                   "\" behind the @, want the step of a "
                                                   "checkpoint, as in runs/mine@1200"));
  }
  flags->step = step;
  flags->resume = at.run;
  if (flags->resume.empty()) flags->resume = kFolderOfName;
  return absl::OkStatus();
}

// A folder to go on with in which no run stands is one to begin in, where there is something to
// begin.
absl::Status FindRun(RunFlags* flags) {
  if (flags->resume.empty() || flags->resume == kFolderOfName) return absl::OkStatus();
  const std::string recorded = flags->resume + "/experiment.yaml";
  const absl::Status is_there = ReadFile(recorded).status();
  if (is_there.ok()) {
    if (flags->experiment.empty()) flags->experiment = recorded;
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(is_there) || flags->experiment.empty() || flags->step) {
    return CheckRecorded(flags->resume);
  }
  flags->out = std::exchange(flags->resume, "");
  flags->overwrite = true;  // what is there was broken off before it began
  return absl::OkStatus();
}

std::string FolderOf(const std::string& name) { return "runs/" + name; }

// Finds the folder to go on with, where it follows from the experiment's name.
absl::Status FindRunOfName(RunFlags* flags) {
  if (flags->resume != kFolderOfName) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string name, NameOfExperiment(flags->experiment, flags->overrides));
  flags->resume = FolderOf(name);
  return FindRun(flags);
}

std::string DirOf(const RunFlags& flags, const Experiment& experiment) {
  return flags.out.empty() ? FolderOf(experiment.name()) : flags.out;
}

// The past of the run in this folder: none in one that was killed before its first checkpoint.
absl::StatusOr<std::optional<Past>> FindPast(const RunRecord& record, const RunFlags& flags) {
  ASSIGN_OR_RETURN(std::optional<FoundCheckpoint> found, CheckpointToGoOn(record, flags.step));
  if (!found) {
    if (!flags.quiet) Tell(absl::StrCat(record.dir(), ": no checkpoint, beginning anew"));
    return std::nullopt;
  }
  for (const std::string& line : found->skipped) Tell("warning: " + line);
  ASSIGN_OR_RETURN(Experiment then, ExperimentOf(*found));
  return Past{*std::move(found), std::move(then)};
}

// Refuses an experiment that cannot go on with the run, and says what will be otherwise.
absl::Status CheckCourse(const RunFlags& flags, const Past& past, const Experiment& now) {
  RETURN_IF_ERROR(CheckGoesOn(past.experiment, now));
  if (flags.quiet) return absl::OkStatus();
  const CheckpointManifest& manifest = past.checkpoint.manifest;
  ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                   NewCourse(past.experiment, now, manifest.step(), manifest.steps_per_epoch()));
  for (const std::string& line : lines) Tell(absl::StrCat(flags.resume, ": ", line));
  return absl::OkStatus();
}

std::string WhatTrainsOn(const RunRecord& record, const CheckpointManifest& reached,
                         const Experiment& experiment) {
  const char* const unit = experiment.has_steps() ? "steps" : "epochs";
  const uint64_t done =
      experiment.has_steps() ? reached.step() : reached.step() / reached.steps_per_epoch();
  return absl::StrCat(record.dir(), ": all ", done, " ", unit,
                      " are trained, nothing is left to do; --set ", unit, "=", 2 * done,
                      " would train on, --overwrite or another folder anew");
}

// The steps to trace, if the flags name any.
absl::StatusOr<std::optional<TraceSteps>> StepsToTrace(const RunFlags& flags,
                                                       const Experiment& experiment) {
  if (flags.trace.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const TraceSteps steps, ParseTraceSteps(flags.trace));
  ASSIGN_OR_RETURN(const CarrierGrid grid, GridOf(experiment, std::max(1, flags.session.carriers)));
  if (!flags.session.stage_carriers.empty()) {
    return absl::InvalidArgumentError(
        "--trace with --carriers for each stage, want one number: a trace has whole pipelines");
  }
  const Pipelines pipelines{static_cast<int>(experiment.pipeline().stages()), grid};
  RETURN_IF_ERROR(CheckTraceSize(EmptyTrace(experiment, pipelines, /*run=*/"", steps)));
  return steps;
}

// Warns of what the experiment asks for, and of outliers that the run has captured before.
absl::Status Warn(const std::string& resumed, const Experiment& experiment) {
  ASSIGN_OR_RETURN(std::vector<std::string> warnings, PlanWarnings(experiment));
  if (!resumed.empty()) {
    ASSIGN_OR_RETURN(const auto outliers, OutlierWarnings(resumed, experiment));
    warnings.insert(warnings.end(), outliers.begin(), outliers.end());
  }
  for (const std::string& warning : warnings) Tell(warning);
  return absl::OkStatus();
}

// All that can be wrong with an experiment before stages start.
absl::Status Check(const RunFlags& flags, const std::optional<Past>& past,
                   const Experiment& experiment) {
  RETURN_IF_ERROR(CheckListen(experiment, flags.session));
  if (past) RETURN_IF_ERROR(CheckCourse(flags, *past, experiment));
  RETURN_IF_ERROR(CheckState(flags, experiment));
  RETURN_IF_ERROR(CheckLimit(flags, experiment));
  if (past) RETURN_IF_ERROR(CheckBase(experiment, past->checkpoint));
  if (!past) RETURN_IF_ERROR(CheckInitial(experiment, flags.quiet));
  return flags.quiet ? absl::OkStatus() : Warn(flags.resume, experiment);
}

}  // namespace

int RunCommand(RunFlags flags, Interruption* interruption) {
  absl::Status usage = TakeCarriers(&flags);
  if (usage.ok()) usage = TakeStep(&flags);
  if (usage.ok()) usage = CheckUsage(flags);
  if (usage.ok()) usage = FindRun(&flags);
  if (usage.ok()) usage = FindRunOfName(&flags);
  if (!usage.ok()) return Complain(usage, kExitUsage);
  absl::StatusOr<std::unique_ptr<RunRecord>> record(nullptr);
  absl::StatusOr<std::optional<Past>> past(std::nullopt);
  if (!flags.resume.empty()) {
    record = RunRecord::Open(flags.resume);
    if (!record.ok()) return Complain(record.status(), ExitOfPath(record.status()));
    past = FindPast(**record, flags);
    if (!past.ok()) return Complain(past.status(), kExitFailed);
  }
  absl::StatusOr<Experiment> experiment = Load(*past, &flags);
  if (!experiment.ok()) return Complain(experiment.status(), kExitUsage);
  const absl::StatusOr<std::optional<TraceSteps>> trace = StepsToTrace(flags, *experiment);
  if (!trace.ok()) return Complain(trace.status(), kExitUsage);
  const absl::Status fits = Check(flags, *past, *experiment);
  if (!fits.ok()) return Complain(fits, kExitUsage);
  if (*past && HasEnded((*past)->checkpoint.manifest, *experiment, (*record)->dir())) {
    if (!flags.quiet) Tell(WhatTrainsOn(**record, (*past)->checkpoint.manifest, *experiment));
    return kExitDone;
  }
  if (flags.resume.empty()) {
    record = RunRecord::Create(DirOf(flags, *experiment), flags.overwrite);
    if (!record.ok()) return Complain(record.status(), ExitOfPath(record.status()));
  }
  RecordedRunOptions options = {flags.session, flags.metrics_listen, flags.metrics_linger_seconds,
                                flags.quiet,   std::nullopt,         *trace};
  if (*past) options.from = std::move((*past)->checkpoint);
  return RunRecorded(*std::move(experiment), std::move(options), *std::move(record), interruption);
}

Command AddRun(CLI::App* app) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App* run = app->add_subcommand("run", "train an experiment");
  run->footer(kRunExamples);
  run->add_option("EXPERIMENT", flags->experiment,
                  "experiment file (YAML); with --resume only where no run stands yet, or to go on "
                  "as another one")
      ->transform(kPath);
  AddOverrides(run, &flags->overrides);
  run->add_option("--resume", flags->resume,
                  "go on with the run in this folder from its last checkpoint, or that of STEP, or "
                  "begin EXPERIMENT there if there is none; without DIR in the folder of the "
                  "experiment's name")
      ->type_name("DIR[@STEP]")
      ->expected(0, 1)
      ->default_str(kFolderOfName)
      ->transform(kPath);
  run->add_option("--out", flags->out, "folder of the results (default: runs/NAME)")
      ->transform(kPath);
  run->add_flag("--overwrite", flags->overwrite, "replace a run that stands in that folder");
  AddStages(run, &flags->session);
  run->add_option("--carriers", flags->carriers,
                  "number of pipelines, each with all stages, that carry the experiment's replicas "
                  "(default: those of --stages, or 1); or, with a number for each stage, of the "
                  "machines that share its work, whose addresses are then named stage by stage")
      ->type_name("N[,N...]");
  run->add_option("--listen", flags->session.listen,
                  "host:port at which further servers may join the run (stage_server --join); port "
                  "0: any. Wants --stages and membership.open")
      ->type_name("HOST:PORT");
  run->add_flag("--insecure", flags->session.insecure,
                "with --listen: where others may call, with neither certificates nor a secret");
  run->add_option(
         "--metrics_listen", flags->metrics_listen,
         "host:port of /metrics and /healthz; port 0: any. The first line and targets.json "
         "say which")
      ->capture_default_str();
  run->add_option("--metrics_linger", flags->metrics_linger_seconds,
                  "seconds to keep /metrics, and the stages, up after the run")
      ->capture_default_str()
      ->check(kSeconds);
  run->add_option("--trace", flags->trace,
                  "write what each stage did in these training steps of the run to trace.json, for "
                  "thinwire trace and Perfetto: steps=10..12, or steps=5")
      ->type_name("STEPS");
  run->add_flag("--quiet", flags->quiet, "print errors only");
  AddLaunch(run, &flags->session);
  return {run, [flags](Interruption* interruption) { return RunCommand(*flags, interruption); }};
}

}  // namespace thinwire
