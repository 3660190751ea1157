// `thinwire evaluate`: perplexity and accuracy of given weights, without codecs and with each.

#include "coordinator/evaluate/evaluate.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text.h"
#include "compress/codecs/plugin.h"
#include "config/codec_pair.h"
#include "config/specs.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/evaluate/table.h"
#include "coordinator/evaluate/target.h"
#include "coordinator/files/json.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/session.h"

namespace thinwire {
namespace {

struct EvaluateFlags {
  TargetOptions target;
  std::vector<std::string> codecs;  // texts, or paths of libraries
  std::string parameters;           // JSON for libraries among them
  uint64_t calibration_samples = 0;
  bool json = false;
  SessionOptions session;
};

constexpr char kEvaluateExamples[] =
    R"(Runs the test set once for each row: without codecs, with those that TARGET was trained with,
and with each --codec for activations at all cuts. Tells the loss, how far it is above that
without codecs, perplexity or accuracy, and the bits that crossed the cuts for each element.
Nothing is trained and nothing is written. Codecs of gradients do nothing here. With --calibrate
codecs have what they would keep in training: principal axes, outlier channels, factors.

TARGET is the folder of a run (its final weights), RUN@STEP or RUN@best (a checkpoint's), an
experiment file (its init, or random weights), or a model's folder as Hugging Face has them,
with --data: a text, of which the last tenth is the test set (--set data.split=0.5: the last
half), or the name of a text that is a data set. Such a folder is cut at three balanced places
and reads samples of at most 1024 tokens, unless --set says otherwise.

Examples:
  thinwire evaluate runs/shakespeare
  thinwire evaluate runs/shakespeare@best --codec 'uniform(bits=4, scope=token)' \
      --codec 'ecsq(step=1, scope=token)'
  thinwire evaluate models/SmolLM2-135M --data notes.txt --set data.context=256 --samples 8 \
      --codec 'uniform(bits=8, scope=token)' --codec 'topk(ratio=0.3, scope=token)'
  thinwire evaluate models/SmolLM2-135M --data notes.txt --calibrate 8 \
      --codec 'ecsq(rate=1.5, rotation=principal, scope=token, first_position=exact)'
  thinwire evaluate experiments/quickstart.yaml --set init=runs/quickstart/model --json
Exit codes: 0 done, 1 evaluation failed, 2 wrong usage, target or codec, 130 interrupted.
)";

struct PreparedEvaluation {
  EvaluationTask task;
  std::string weights;                 // their folder
  std::vector<std::string> libraries;  // paths of codec plug-ins among the codecs
};

absl::Status AddCodec(const std::string& text, const EvaluateFlags& flags,
                      PreparedEvaluation* prepared) {
  const absl::StatusOr<CodecPair> pair = ParseCodecPair(text, flags.parameters);
  if (!pair.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--codec: ", pair.status().message()));
  }
  EvaluationTask& task = prepared->task;
  if (GivenCuts(task.experiment.pipeline()).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--codec: ", text, ", but the model is not cut: want pipeline.cuts with it (--set)"));
  }
  RETURN_IF_ERROR(WithActivationCodec(task.experiment, pair->activations).status());
  const Plugin* const plugin = FindPlugin(pair->activations.plugin);
  if (plugin != nullptr) prepared->libraries.push_back(plugin->path);
  task.codecs.push_back(pair->activations);
  return absl::OkStatus();
}

absl::StatusOr<PreparedEvaluation> Prepare(EvaluateFlags* flags) {
  ASSIGN_OR_RETURN(EvaluationTarget target, OpenTarget(flags->target, &flags->session));
  PreparedEvaluation prepared;
  prepared.task.experiment = std::move(target.experiment);
  prepared.task.weights = std::move(target.weights);
  prepared.task.epochs = target.epochs;
  prepared.task.calibration_samples = flags->calibration_samples;
  prepared.weights = target.dir;
  for (const std::string& codec : flags->codecs) {
    RETURN_IF_ERROR(AddCodec(codec, *flags, &prepared));
  }
  return prepared;
}

absl::Status Evaluate(const EvaluateFlags& flags, const PreparedEvaluation& prepared,
                      Interruption* interruption, EvaluateReport* report) {
  SessionOptions options = flags.session;
  options.libraries = prepared.libraries;
  ASSIGN_OR_RETURN(const auto session,
                   Session::Start("evaluate", prepared.task.experiment, options, interruption));
  report->set_source(flags.target.target);
  report->set_weights(prepared.weights);
  const auto say = [](const EvaluateRow& row) {
    std::fprintf(stderr, "%s\n", PrintableLine(SaidOf(row)).c_str());
  };
  return RunEvaluations(prepared.task, session->fleet(), say, report);
}

int EvaluateCommand(EvaluateFlags flags, Interruption* interruption) {
  const absl::StatusOr<PreparedEvaluation> prepared = Prepare(&flags);
  if (!prepared.ok()) return Complain(prepared.status(), kExitUsage);
  EvaluateReport report;
  const absl::Status status = Evaluate(flags, *prepared, interruption, &report);
  if (!status.ok() && interruption->seen()) {
    return Complain(absl::CancelledError("interrupted"), kExitInterrupted);
  }
  if (!status.ok()) return Complain(status, kExitFailed);
  return PrintResult(flags.json ? JsonText(ToJson(report), 2) + "\n" : EvaluateTable(report));
}

}  // namespace

Command AddEvaluate(CLI::App* app) {
  const auto flags = std::make_shared<EvaluateFlags>();
  CLI::App* evaluate = app->add_subcommand(
      "evaluate", "perplexity and accuracy of given weights, with each of several codecs");
  evaluate->footer(kEvaluateExamples);
  evaluate
      ->add_option(
          "TARGET", flags->target.target,
          "a run, RUN@STEP, RUN@best, an experiment file, a model's folder, or hf:ORG/NAME")
      ->required()
      ->transform(kPath);
  evaluate
      ->add_option("--data", flags->target.data,
                   "of a model's folder: path of a text, or wikitext2, shakespeare")
      ->transform(kPath);
  evaluate
      ->add_option("--samples", flags->target.samples,
                   "most samples of the test set, the first ones; 0: as the experiment says")
      ->capture_default_str();
  evaluate
      ->add_option("--codec", flags->codecs,
                   "a codec to try for activations at all cuts: its text, or the path of a "
                   "library; may stand often")
      ->allow_extra_args(false);
  evaluate
      ->add_option("--calibrate", flags->calibration_samples,
                   "most training samples, the first ones, that run through each codec before the "
                   "test set, so that it has what it keeps between messages: principal axes, "
                   "outlier channels, factors; 0: none")
      ->capture_default_str();
  evaluate->add_option("--parameters", flags->parameters, "JSON handed to libraries");
  evaluate->add_flag("--json", flags->json, "print JSON in place of a table");
  AddOverrides(evaluate, &flags->target.overrides);
  AddStages(evaluate, &flags->session);
  AddLaunch(evaluate, &flags->session);
  return {evaluate,
          [flags](Interruption* interruption) { return EvaluateCommand(*flags, interruption); }};
}

}  // namespace thinwire
