// `thinwire tune`: which codec reaches a target soonest over a given link.

#include "coordinator/tune/tune.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/files/file_lock.h"
#include "coordinator/files/folders.h"
#include "coordinator/files/json.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/session.h"
#include "coordinator/speeds/plan_speeds.h"
#include "coordinator/tune/record.h"
#include "coordinator/tune/text.h"

namespace thinwire {
namespace {

struct TuneFlags {
  std::string experiment;              // path of the file
  std::vector<std::string> overrides;  // path=value
  double link_mbit = 0;
  NetworkFlags network;
  std::optional<double> max_loss;  // points of accuracy, or nats; none: 1, or 0.02
  std::optional<double> target;    // per cent, or nats; none: what `none` will reach, less max_loss
  std::vector<std::string> codecs;    // as ParseCodecPair has them; none: the library
  std::string parameters;             // JSON for libraries among them
  std::vector<int64_t> microbatches;  // of which each codec takes its fastest; none: the file's
  int candidates = 8;                 // trained, at most
  int seeds = 3;                      // of the last rung
  int batches = 3;                    // of the probe
  int jobs = 1;                       // runs at once
  SpeedFlags speeds;
  std::string out;              // folder; empty: runs/NAME-tune
  std::string format = "text";  // text, json
  SessionOptions session;       // of the stages that train here
};

constexpr char kTuneExamples[] =
    R"(Which codec reaches the target soonest over this link? Candidates, a built-in library of pairs
or --codec, are cut by the step that each makes on the link, then by what it does to the
gradient of some batches, then by short trainings on this machine, in rungs: each is longer,
has more seeds and half the candidates, beside `none` with the same seeds. All of it takes at
most a fifth of training each candidate that is trained in full with every seed. Accuracy does
not depend on the link, so none is needed. OUT gets tuned.yaml, the experiment with the choice,
and tune.json; the same command goes on after any interruption. docs/tune.md has the rest.

Examples:
  thinwire tune my.yaml --link_mbit 100 --set pipeline.threads=1
  thinwire tune experiments/shakespeare.yaml --link_mbit 50 --rtt_ms 100 --max_loss 0.02
  thinwire tune my.yaml --link_mbit 20 --codec 'ecsq(rate=2)' --codec 'fp8 | uniform(bits=4)'
  thinwire run runs/my-tune/tuned.yaml
A pair 'A | G' has A on activations and G on gradients.
Exit codes: 0 done, 1 failed, 2 wrong usage or experiment, 130 interrupted.
)";

constexpr double kPoints = 1.0, kNats = 0.02;  // of --max_loss by default

absl::Status CheckNumbers(const TuneFlags& flags, bool tokens) {
  const double loss = flags.max_loss.value_or(0);
  if (!std::isfinite(loss) || loss < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--max_loss: ", loss, ", want at least 0 ",
                                                   tokens ? "nats" : "points of accuracy"));
  }
  if (!flags.target) return absl::OkStatus();
  const double target = *flags.target;
  if (std::isfinite(target) && target > 0 && (tokens || target <= 100)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--target: ", target, ", want ",
      tokens ? "nats of validation loss, above 0" : "per cent of accuracy, up to 100"));
}

absl::Status CheckCuts(const Experiment& experiment) {
  if (experiment.pipeline().stages() > 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "pipeline.stages: 1: nothing would cross the link; want at least 2, as by --set "
      "pipeline.stages=4. Training here is in one process in any case");
}

TuneTask TaskOf(const TuneFlags& flags, const Experiment& experiment, bool tokens) {
  TuneTask task;
  task.set_experiment(ToYaml(experiment));
  task.set_link_mbit(flags.link_mbit);
  task.set_rtt_ms(flags.network.rtt_ms);
  task.set_nic(flags.network.nic);
  task.set_cores(static_cast<uint32_t>(flags.network.cores));
  task.set_max_loss(flags.max_loss.value_or(tokens ? kNats : kPoints));
  if (flags.target) task.set_target(*flags.target);
  task.set_candidates(static_cast<uint32_t>(flags.candidates));
  task.set_seeds(static_cast<uint32_t>(flags.seeds));
  task.set_batches(static_cast<uint32_t>(flags.batches));
  for (const std::string& codec : flags.codecs) task.add_codecs(codec);
  task.set_parameters(flags.parameters);
  for (const int64_t count : flags.microbatches) {
    task.add_microbatches(static_cast<uint32_t>(count));
  }
  task.set_from(flags.speeds.from);
  if (flags.speeds.gflops) task.set_gflops(*flags.speeds.gflops);
  if (flags.speeds.codec_gbps) task.set_codec_gbps(*flags.speeds.codec_gbps);
  return task;
}

// Returns what the flags ask for, checked.
absl::StatusOr<TuneQuestion> Ask(const TuneFlags& flags) {
  TuneQuestion question;
  ASSIGN_OR_RETURN(question.assumptions, AssumptionsFrom(flags.link_mbit, flags.network));
  ASSIGN_OR_RETURN(question.experiment, LoadExperiment(flags.experiment, flags.overrides));
  const Experiment& experiment = question.experiment;
  if (const uint32_t replicas = ReplicasOf(experiment); replicas > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("replicas.count: ", replicas,
                     ", want 1: tune compares codecs at the cuts of one pipeline"));
  }
  ASSIGN_OR_RETURN(const DatasetInfo data, DatasetOf(experiment.data()));
  if (data.score_unit > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.task: ", experiment.data().task(),
                     ", want one of classes: tune judges by accuracies, or by nats of tokens"));
  }
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  question.tokens = model.is_language();
  RETURN_IF_ERROR(CheckNumbers(flags, question.tokens));
  RETURN_IF_ERROR(CheckCuts(experiment));
  for (const int64_t count : flags.microbatches) {
    if (count >= 1 && count <= experiment.data().batch_size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--microbatches: ", count, ", want 1 to ",
                                                   experiment.data().batch_size(),
                                                   ", the batch size"));
  }
  question.task = TaskOf(flags, experiment, question.tokens);
  question.dir = flags.out.empty() ? absl::StrCat("runs/", experiment.name(), "-tune") : flags.out;
  ASSIGN_OR_RETURN(question.given, GivenSpeeds(flags.speeds, experiment));
  question.speeds = flags.speeds;
  question.session = flags.session;
  question.jobs = flags.jobs;
  return question;
}

absl::StatusOr<std::unique_ptr<FileLock>> TakeFolder(const std::string& dir) {
  RETURN_IF_ERROR(MakeFolder(dir).status());
  return FileLock::Take(dir + "/.tune.lock");
}

int TuneCommand(const TuneFlags& flags, Interruption* interruption) {
  const absl::StatusOr<TuneQuestion> question = Ask(flags);
  if (!question.ok()) return Complain(question.status(), kExitUsage);
  const auto lock = TakeFolder(question->dir);
  if (!lock.ok()) return Complain(lock.status(), kExitUsage);
  absl::StatusOr<TuneReport> report = OpenTune(question->dir, question->task);
  if (!report.ok()) return Complain(report.status(), kExitUsage);
  const absl::Status tuned = RunTune(*question, &*report, interruption);
  if (interruption->seen() && !tuned.ok()) {
    return Complain(absl::CancelledError("interrupted; the same command goes on"),
                    kExitInterrupted);
  }
  if (absl::IsInvalidArgument(tuned)) return Complain(tuned, kExitUsage);
  if (!tuned.ok()) return Complain(tuned, kExitFailed);
  const absl::Status written = WriteTuned(*question, *report);
  if (!written.ok()) return Complain(written, kExitFailed);
  const std::string& dir = question->dir;
  return PrintResult(flags.format == "json" ? JsonText(ToJson(*report), 2) + "\n"
                                            : absl::StrCat(TuneText(*report), "Written: ", dir,
                                                           "/tuned.yaml, ", dir, "/tune.json\n"));
}

void AddSearch(CLI::App* tune, TuneFlags* flags) {
  tune->add_option("--codec", flags->codecs,
                   "a codec, or a pair 'A | G', in place of the library: its text, or the path of "
                   "a library file; may stand often. The experiment's own always is a candidate")
      ->allow_extra_args(false);
  tune->add_option("--parameters", flags->parameters, "JSON handed to library files");
  tune->add_option("--microbatches", flags->microbatches,
                   "numbers of microbatches, of which each candidate takes its fastest (default: "
                   "the experiment's)")
      ->delimiter(',')
      ->allow_extra_args(false);
  tune->add_option("--candidates", flags->candidates, "codecs to train, at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  tune->add_option("--seeds", flags->seeds, "of the last rung")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  tune->add_option("--batches", flags->batches, "whose gradients are compared")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  AddJobs(tune, &flags->jobs);
}

}  // namespace

Command AddTune(CLI::App* app) {
  const auto flags = std::make_shared<TuneFlags>();
  CLI::App* tune = app->add_subcommand(
      "tune", "find the codec that reaches a target soonest over a link, by short trainings");
  tune->footer(kTuneExamples);
  AddExperiment(tune, &flags->experiment, &flags->overrides);
  tune->add_option("--link_mbit", flags->link_mbit,
                   "rate of every host's interface in each direction, Mbit/s")
      ->required();
  AddNetwork(tune, &flags->network);
  AddSpeeds(tune, &flags->speeds);
  tune->add_option("--max_loss", flags->max_loss,
                   "how much worse than without codecs it may end: points of accuracy, or of "
                   "language models nats of validation loss (default: 1 point, 0.02 nats)");
  tune->add_option("--target", flags->target,
                   "what is to be reached: per cent of accuracy, or nats (default: what the "
                   "experiment without codecs is predicted to end at, less --max_loss)");
  AddSearch(tune, flags.get());
  tune->add_option("--out", flags->out, "folder (default: runs/NAME-tune)")->transform(kPath);
  AddFormat(tune, &flags->format);
  AddLaunch(tune, &flags->session);
  return {tune, [flags](Interruption* interruption) { return TuneCommand(*flags, interruption); }};
}

}  // namespace thinwire
