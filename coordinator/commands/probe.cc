// `thinwire probe`: from a run or an experiment to tables of how its gradients take codecs.

#include "coordinator/probe/probe.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "compress/codecs/plugin.h"
#include "config/codec_pair.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/files/json.h"
#include "coordinator/files/record.h"
#include "coordinator/probe/budget.h"
#include "coordinator/probe/configurations.h"
#include "coordinator/probe/table.h"
#include "coordinator/run/model_files.h"
#include "coordinator/run/run_weights.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/session.h"

namespace thinwire {
namespace {

struct ProbeFlags {
  std::string target;                  // folder of a run, or path of an experiment file
  std::vector<std::string> overrides;  // path=value
  int batches = 4;
  std::vector<std::string> codecs;  // as ParseProbeCodec takes them
  // Mean bits per element of all directions of all cuts, to be shared among them; 0: nothing is.
  double budget = 0;
  std::string parameters;        // JSON for libraries among them
  std::string levels;            // path of a file of them; empty: none
  std::string format;            // md, csv, json, yaml; empty: by the file's ending, md on stdout
  std::vector<std::string> out;  // files; none: stdout
  SessionOptions session;
};

constexpr char kProbeExamples[] =
    R"(Takes a run's final weights and the first batches of the epoch that would follow, or an
experiment's initial weights and its first batches. Computes the gradient of each batch without
codecs, then with each codec on activations alone (forward), on gradients alone (backward) and
on both, and tells how far the parameter gradient is from the one without: cosine, relative
error, ratio of norms; for the whole model and for the segments between the cuts. Beside it what
the codec cost (wire bits per element) and lost at the cuts. The experiment's own compression is
left aside. Nothing is trained and the run's folder is not written to.

Examples:
  thinwire probe runs/quickstart
  thinwire probe experiments/quickstart.yaml --batches 8 --out probe.md --out probe.json
  thinwire probe runs/quickstart --codec 'topk(ratio=0.1, scope=sample)' \
      --codec 'uniform(bits=4, zero=on_grid)' --format csv
  thinwire probe runs/quickstart \
      --codec 'topk(ratio=0.1, scope=sample) | topk(indices=shared)'
A pair 'A | G' has A on activations and G on gradients.

With --budget each direction of each cut is compressed alone at several rates, and the budget is
shared so that the gradient's error is least: as compression.boundaries of an experiment file.
  thinwire probe runs/cifar10 --budget 1.25 --out shares.md --out shares.yaml
Exit codes: 0 done, 1 probe failed, 2 wrong usage, experiment or codec, 130 interrupted.
)";

namespace fs = std::filesystem;

// Default codecs that share a budget: gradients are unbiased, activations are not.
constexpr char kBudgetCodecs[] = "ecsq(rounding=dead_zone) | ecsq(rounding=dither)";

struct PreparedProbe {
  ProbeTask task;
  std::vector<std::string> skipped;
  std::optional<Budget> budget;  // budget of the task, if any
};

// Adds the rows. The user's codecs must all be valid; standard ones that this build or this model
// refuses are left out.
absl::Status AddConfigurations(const ProbeFlags& flags, PreparedProbe* prepared) {
  const bool is_standard = flags.codecs.empty() && flags.levels.empty();
  std::vector<ProbeConfiguration> all;
  for (const std::string& text : is_standard ? StandardProbeCodecs() : flags.codecs) {
    absl::StatusOr<std::vector<ProbeConfiguration>> some = ParseProbeCodec(text, flags.parameters);
    if (!some.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--codec: ", some.status().message()));
    }
    all.insert(all.end(), some->begin(), some->end());
  }
  if (!flags.levels.empty()) {
    ASSIGN_OR_RETURN(const std::vector<ProbeConfiguration> some,
                     ReadProbeCodecs(flags.levels, flags.parameters));
    all.insert(all.end(), some.begin(), some.end());
  }
  if (!MaySendGradients(prepared->task.experiment)) {
    prepared->skipped.push_back(
        "backward, both: gradients cross no cut, nothing before is trained");
  }
  for (const ProbeConfiguration& one : SentBy(prepared->task.experiment, std::move(all))) {
    const absl::Status status = WithCodecs(prepared->task.experiment, one).status();
    if (status.ok()) {
      prepared->task.configurations.push_back(one);
    } else if (is_standard) {  // the model may be too small for it
      prepared->skipped.push_back(absl::StrCat(one.Directions(), ": ", status.message()));
    } else {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status AddBudget(const ProbeFlags& flags, PreparedProbe* prepared) {
  if (flags.codecs.size() > 1 || !flags.levels.empty()) {
    return absl::InvalidArgumentError("--budget: want one --codec at most, and no --levels");
  }
  ASSIGN_OR_RETURN(
      prepared->budget,
      ParseBudget(flags.budget, flags.codecs.empty() ? kBudgetCodecs : flags.codecs.front()));
  ProbeTask& task = prepared->task;
  ASSIGN_OR_RETURN(task.configurations, BudgetConfigurations(*prepared->budget, task.experiment));
  return WithCodecs(task.experiment, task.configurations.front()).status();
}

std::string FormatOf(const ProbeFlags& flags, const std::string& path) {
  return FormatFor(flags.format, path, {"json", "csv", "yaml"}, "md");
}

absl::Status CheckFormats(const ProbeFlags& flags) {
  if (flags.budget != 0) return absl::OkStatus();
  bool has_yaml = flags.format == "yaml";
  for (const std::string& path : flags.out) has_yaml = has_yaml || FormatOf(flags, path) == "yaml";
  if (!has_yaml) return absl::OkStatus();
  return absl::InvalidArgumentError("YAML has the shares of a budget: want --budget with it");
}

// Checks the number of batches before stages start, which takes seconds.
absl::Status CheckBatches(const ProbeFlags& flags, const Experiment& experiment) {
  ASSIGN_OR_RETURN(const uint64_t samples, TrainingSamples(experiment));
  const uint64_t size = experiment.data().batch_size(), batches = (samples + size - 1) / size;
  if (flags.batches >= 1 && static_cast<uint64_t>(flags.batches) <= batches) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("--batches: ", flags.batches, ", want 1 to ",
                                                 batches, ", the batches of an epoch"));
}

absl::StatusOr<PreparedProbe> Prepare(const ProbeFlags& flags) {
  std::error_code ignored;
  const bool is_run = fs::is_directory(flags.target, ignored);
  if (is_run) RETURN_IF_ERROR(CheckRecorded(flags.target));
  const std::string path = is_run ? flags.target + "/experiment.yaml" : flags.target;
  ASSIGN_OR_RETURN(const Experiment trained,
                   is_run ? ReadResolved(path) : LoadExperiment(path, {}));
  // Defaults; the user's overrides follow.
  std::vector<std::string> overrides = {"pipeline.stages=1", "device=" + trained.device(0)};
  overrides.insert(overrides.end(), flags.overrides.begin(), flags.overrides.end());
  PreparedProbe prepared;
  ProbeTask& task = prepared.task;
  ASSIGN_OR_RETURN(task.experiment, LoadExperiment(path, overrides, {/*stages=*/0, &trained}));
  task.experiment.clear_replicas();  // the gradient is that of one pipeline
  task.experiment.clear_membership();
  task.experiment.clear_init_at();  // weights come from here
  RETURN_IF_ERROR(CheckBatches(flags, task.experiment));
  task.batches = flags.batches;
  if (is_run) {
    ASSIGN_OR_RETURN(const RunWeights left, WeightsOf({flags.target, std::nullopt}));
    task.epochs_trained = left.epochs.value_or(trained.epochs());
    ASSIGN_OR_RETURN(ModelFolder folder, ModelFolder::Open(flags.target + "/model"));
    ASSIGN_OR_RETURN(task.weights, ModelShares::Of(task.experiment, std::move(folder)));
  } else if (task.experiment.has_init()) {
    ASSIGN_OR_RETURN(task.weights, ModelShares::Initial(task.experiment));
    RETURN_IF_ERROR(CheckInitialVocabulary(task.experiment));
  }
  RETURN_IF_ERROR(CheckFormats(flags));
  RETURN_IF_ERROR(flags.budget != 0 ? AddBudget(flags, &prepared)
                                    : AddConfigurations(flags, &prepared));
  return prepared;
}

std::string Formatted(const ProbeReport& report, const std::string& format) {
  if (format == "json") return JsonText(ToJson(report), 2) + "\n";
  if (format == "yaml") return SharesYaml(report.budget());
  return format == "csv" ? ProbeCsv(report) : ProbeMarkdown(report);
}

void Say(const std::string& line) { std::fprintf(stderr, "%s\n", PrintableLine(line).c_str()); }

// Checks that the files can be made, before the probe, which may take hours.
absl::Status CheckOut(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    RETURN_IF_ERROR(CheckReplaceable(path));
    const std::string folder = (fs::path(path).parent_path() / ".").string();
    if (access(folder.c_str(), W_OK | X_OK) != 0) return FileError(path, "cannot write", errno);
  }
  return absl::OkStatus();
}

// Writes all files, even after an error. A report that is not in all of them also goes to stdout.
ExitCode Write(const ProbeFlags& flags, const ProbeReport& report) {
  ExitCode exit_code = kExitDone;
  for (const std::string& path : flags.out) {
    const absl::Status status = ReplaceFile(path, Formatted(report, FormatOf(flags, path)));
    if (!status.ok()) exit_code = Complain(status, kExitFailed);
  }
  if (!flags.out.empty() && exit_code == kExitDone) return exit_code;
  const ExitCode printed = PrintResult(Formatted(report, FormatOf(flags, "")));
  return printed == kExitDone ? exit_code : printed;
}

// Returns the paths of the codec plug-ins among the configurations.
std::vector<std::string> LibrariesOf(const std::vector<ProbeConfiguration>& configurations) {
  std::vector<std::string> libraries;
  for (const ProbeConfiguration& one : configurations) {
    for (const std::optional<CodecSpec>& codec : {one.activations, one.gradients}) {
      const Plugin* const plugin = codec ? FindPlugin(codec->plugin) : nullptr;
      if (plugin != nullptr) libraries.push_back(plugin->path);
    }
  }
  return libraries;
}

absl::Status Probe(const ProbeFlags& flags, const PreparedProbe& prepared,
                   Interruption* interruption, ProbeReport* report) {
  const ProbeTask& task = prepared.task;
  SessionOptions options = flags.session;
  options.libraries = LibrariesOf(task.configurations);
  ASSIGN_OR_RETURN(const auto session,
                   Session::Start("probe", task.experiment, options, interruption));
  RETURN_IF_ERROR(RunProbe(task, session->fleet(), Say, report));
  return prepared.budget ? AddShares(*prepared.budget, task.experiment, report) : absl::OkStatus();
}

int ProbeCommand(const ProbeFlags& flags, Interruption* interruption) {
  const absl::Status out = CheckOut(flags.out);
  if (!out.ok()) return Complain(out, kExitUsage);
  const absl::StatusOr<PreparedProbe> prepared = Prepare(flags);
  if (!prepared.ok()) return Complain(prepared.status(), kExitUsage);
  ProbeReport report;
  report.set_source(flags.target);
  for (const std::string& skipped : prepared->skipped) {
    Say(absl::StrCat("skipped, ", skipped));
    report.add_skipped(skipped);
  }
  const absl::Status status = Probe(flags, *prepared, interruption, &report);
  if (!status.ok() && interruption->seen()) {
    return Complain(absl::CancelledError("interrupted"), kExitInterrupted);
  }
  return status.ok() ? Write(flags, report) : Complain(status, kExitFailed);
}

}  // namespace

Command AddProbe(CLI::App* app) {
  const auto flags = std::make_shared<ProbeFlags>();
  CLI::App* probe = app->add_subcommand(
      "probe", "compare parameter gradients with and without codecs on given weights");
  probe->footer(kProbeExamples);
  probe->add_option("TARGET", flags->target, "folder of a completed run, or an experiment file")
      ->required()
      ->transform(kPath);
  AddOverrides(probe, &flags->overrides);
  probe->add_option("--batches", flags->batches, "batches to compare, at most an epoch's")
      ->capture_default_str();
  probe
      ->add_option("--codec", flags->codecs,
                   "a codec, or a pair 'A | G', to try: its text, or the path of a library; may "
                   "stand often (default: a standard list)")
      ->allow_extra_args(false);
  probe->add_option("--parameters", flags->parameters, "JSON handed to libraries");
  probe->add_option("--levels", flags->levels, "file of codecs to try, one per line")
      ->transform(kPath);
  probe
      ->add_option("--budget", flags->budget,
                   "mean bits per element of all directions of all cuts, to be shared among them: "
                   "one --codec with a rate, or a pair")
      ->check(CLI::PositiveNumber);
  probe
      ->add_option(
          "--format", flags->format,
          "md, csv, json or, of a budget's shares, yaml (default: as the file ends, or md)")
      ->check(CLI::IsMember({"md", "csv", "json", "yaml"}));
  probe->add_option("--out", flags->out, "file to write (default: stdout); may stand often")
      ->allow_extra_args(false)
      ->transform(kPath);
  AddLaunch(probe, &flags->session);
  return {probe,
          [flags](Interruption* interruption) { return ProbeCommand(*flags, interruption); }};
}

}  // namespace thinwire
