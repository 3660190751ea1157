#include "coordinator/commands/tune_command.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "config/differences.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/files/file_lock.h"
#include "coordinator/files/json.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/run_speeds.h"
#include "coordinator/plan/state_plan.h"
#include "coordinator/probe/configurations.h"
#include "coordinator/probe/probe.h"
#include "coordinator/results/outcome.h"
#include "coordinator/results/run_files.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/sweep/sweep_runs.h"
#include "coordinator/tune/cuts.h"
#include "coordinator/tune/judge.h"
#include "coordinator/tune/library.h"
#include "coordinator/tune/record.h"
#include "coordinator/tune/rungs.h"
#include "coordinator/tune/text.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

constexpr double kPoints = 1.0, kNats = 0.02;  // defaults of --max_loss

void Say(const std::string& line) { std::fprintf(stderr, "%s\n", PrintableLine(line).c_str()); }

// The checked arguments.
struct Question {
  Experiment experiment;
  bool tokens = false;
  PlanAssumptions assumptions;
  TuneTask task;
  std::string dir;
  Speeds given;
};

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
  task.set_rtt_ms(flags.rtt_ms);
  task.set_nic(flags.nic);
  task.set_cores(static_cast<uint32_t>(flags.cores));
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

absl::StatusOr<Question> Ask(const TuneFlags& flags) {
  Question question;
  question.assumptions.bits_per_second = {flags.link_mbit * 1e6};
  question.assumptions.rtt_ms = flags.rtt_ms;
  question.assumptions.cores = flags.cores;
  const absl::Status nic = FromName(flags.nic, &question.assumptions.nic);
  if (!nic.ok()) return absl::InvalidArgumentError(absl::StrCat("--", nic.message()));
  RETURN_IF_ERROR(CheckAssumptions(question.assumptions));
  ASSIGN_OR_RETURN(question.experiment, LoadExperiment(flags.experiment, flags.overrides));
  const Experiment& experiment = question.experiment;
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  question.tokens = model.tokens;
  RETURN_IF_ERROR(CheckNumbers(flags, model.tokens));
  RETURN_IF_ERROR(CheckCuts(experiment));
  for (const int64_t count : flags.microbatches) {
    if (count >= 1 && count <= experiment.data().batch_size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--microbatches: ", count, ", want 1 to ",
                                                   experiment.data().batch_size(),
                                                   ", the batch size"));
  }
  question.task = TaskOf(flags, experiment, model.tokens);
  question.dir = flags.out.empty() ? absl::StrCat("runs/", experiment.name(), "-tune") : flags.out;
  ASSIGN_OR_RETURN(question.given, GivenSpeeds(flags.speeds, experiment));
  return question;
}

// Adds candidates with their codecs spelled out; those that the model or this build refuses are set
// aside.
absl::Status AddCandidates(const TuneFlags& flags, const Question& question, TuneReport* report) {
  std::vector<TuneCandidate> all(1);
  all[0].set_name(kNone);
  for (TuneCandidate& own : OwnPair(question.experiment)) all.push_back(std::move(own));
  for (size_t i = 0; i < flags.codecs.size(); ++i) {
    ASSIGN_OR_RETURN(TuneCandidate given,
                     GivenPair(flags.codecs[i], flags.parameters, static_cast<int>(i) + 1));
    all.push_back(std::move(given));
  }
  if (flags.codecs.empty()) {
    for (TuneCandidate& pair : StandardPairs(question.tokens)) all.push_back(std::move(pair));
  }
  for (TuneCandidate& one : all) {
    const auto experiment = WithCandidate(question.experiment, one);
    const absl::Status fits =
        experiment.ok() ? PlanState(*experiment).status() : experiment.status();
    if (!fits.ok() && one.name() == kNone) return fits;
    if (!fits.ok()) {
      report->add_left_out(std::string(fits.message()));
      continue;
    }
    ASSIGN_OR_RETURN(*one.mutable_codecs(), CodecsText(*experiment));
    *report->add_candidates() = one;
  }
  return absl::OkStatus();
}

class Tune {
 public:
  Tune(const TuneFlags& flags, const Question& question, TuneReport* report,
       Interruption* interruption)
      : flags_(flags),
        question_(question),
        report_(*report),
        candidates_(*report->mutable_candidates()),
        interruption_(*interruption) {}

  absl::Status Run() {
    if (!report_.choice().empty()) return absl::OkStatus();
    if (!report_.has_speeds()) {
      RETURN_IF_ERROR(AddCandidates(flags_, question_, &report_));
      report_.set_measure(question_.tokens ? "loss" : "accuracy");
      ASSIGN_OR_RETURN(const uint64_t steps, StepsOf(question_.experiment));
      report_.set_experiment_steps(steps);
      RETURN_IF_ERROR(Measure());
      CutByPlan(&candidates_);
      RETURN_IF_ERROR(Save());
    }
    if (report_.probe_steps() == 0 && !Standing(&candidates_).empty()) {
      RETURN_IF_ERROR(Probe());
      CutByError(report_.task().candidates(), &candidates_);
      RETURN_IF_ERROR(Save());
    }
    RETURN_IF_ERROR(Train());
    return Save();
  }

 private:
  absl::Status Save() const { return WriteTune(question_.dir, report_); }

  absl::StatusOr<Experiment> Of(const TuneCandidate& candidate) const {
    return WithCandidate(question_.experiment, candidate);
  }

  absl::Status Measure() {
    Speeds speeds = question_.given;
    std::vector<Experiment> experiments;
    for (const TuneCandidate& one : candidates_) {
      ASSIGN_OR_RETURN(experiments.emplace_back(), Of(one));
    }
    std::vector<const Experiment*> pointers;
    for (const Experiment& experiment : experiments) pointers.push_back(&experiment);
    Say(absl::StrCat("measuring how fast ", candidates_.size() - 1, " codecs and a stage are"));
    RETURN_IF_ERROR(MeasureSpeeds(flags_.speeds, pointers,
                                  question_.experiment.pipeline().threads(), flags_.session,
                                  &interruption_, &speeds));
    *report_.mutable_speeds() = RecordOf(speeds);
    for (TuneCandidate& one : candidates_) RETURN_IF_ERROR(Place(speeds, &one));
    return absl::OkStatus();
  }

  // Plans the candidate's step on the link, with the number of microbatches that makes it fastest.
  absl::Status Place(const Speeds& speeds, TuneCandidate* candidate) const {
    std::vector<uint32_t> counts(report_.task().microbatches().begin(),
                                 report_.task().microbatches().end());
    if (candidate->microbatches() != 0) counts = {candidate->microbatches()};
    if (counts.empty()) counts = {question_.experiment.pipeline().microbatches()};
    TuneCandidate best = *candidate;
    best.clear_microbatches();
    for (const uint32_t count : counts) {
      TuneCandidate one = *candidate;
      one.set_microbatches(count);
      ASSIGN_OR_RETURN(const Experiment experiment, Of(one));
      ASSIGN_OR_RETURN(const Plan plan, MakePlan(experiment, question_.assumptions, speeds));
      one.set_step_seconds(plan.steps.front().seconds);
      one.set_wire_bytes(static_cast<double>(StepWireBytes(plan)));
      if (best.microbatches() == 0 || one.step_seconds() < best.step_seconds()) best = one;
    }
    *candidate = std::move(best);
    return absl::OkStatus();
  }

  // Returns both directions as the candidate has them at every cut; nothing if cuts differ or have
  // layers of their own, which a probe cannot tell from the model.
  absl::StatusOr<std::optional<ProbeConfiguration>> ProbedAs(const TuneCandidate& candidate) const {
    ASSIGN_OR_RETURN(const Experiment experiment, Of(candidate));
    const CompressionConfig& compression = experiment.compression();
    const bool has_own_cuts =
        std::any_of(compression.boundaries().begin(), compression.boundaries().end(),
                    [](const auto& boundary) { return boundary.first != kTiedCut; });
    if (has_own_cuts || compression.has_bottleneck()) return std::nullopt;
    ProbeConfiguration configuration;
    ASSIGN_OR_RETURN(configuration.activations, CodecFrom(compression.activations()));
    ASSIGN_OR_RETURN(configuration.gradients, CodecFrom(compression.gradients()));
    return configuration;
  }

  absl::Status Probe() {
    ProbeTask task;
    TuneCandidate plain;
    ASSIGN_OR_RETURN(task.experiment, Of(plain));
    ASSIGN_OR_RETURN(task.experiment, Shrunk(task.experiment, report_.experiment_steps()));
    ASSIGN_OR_RETURN(const uint64_t samples, TrainingSamples(task.experiment));
    const uint64_t batch = task.experiment.data().batch_size();
    task.batches = static_cast<int>(
        std::min<uint64_t>(report_.task().batches(), (samples + batch - 1) / batch));
    if (task.experiment.has_init()) {
      ASSIGN_OR_RETURN(task.weights, ModelShares::Initial(task.experiment));
    }
    std::vector<TuneCandidate*> probed;
    for (TuneCandidate* const one : Standing(&candidates_)) {
      ASSIGN_OR_RETURN(const auto configuration, ProbedAs(*one));
      if (!configuration) continue;
      probed.push_back(one);
      task.configurations.push_back(*configuration);
    }
    report_.set_probe_steps((probed.size() + 1) * static_cast<uint64_t>(task.batches));
    if (probed.empty()) return absl::OkStatus();
    ProbeReport found;
    {
      ASSIGN_OR_RETURN(const auto session, Session::Start("tune-probe", task.experiment,
                                                          flags_.session, &interruption_));
      RETURN_IF_ERROR(RunProbe(task, session->fleet(), Say, &found));
    }
    interruption_.OnFirst({});
    for (size_t i = 0; i < probed.size(); ++i) {
      probed[i]->set_gradient_error(found.rows(static_cast<int>(i)).all().relative_error().mean());
    }
    return absl::OkStatus();
  }

  // Returns this machine's compute time of a step, whatever the link.
  double ComputeSeconds() const {
    double sample = 0, update = 0;
    for (const TuneBlock& block : report_.speeds().blocks()) {
      sample += block.forward() + block.backward();
      update += block.update();
    }
    return sample * question_.experiment.data().batch_size() + update;
  }

  absl::Status Train() {
    const size_t count = Standing(&candidates_).size();
    report_.clear_rungs();
    if (count == 0) {
      Conclude(/*trend=*/nullptr, &report_);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const RungBudget budget,
                     PlanRungs(count, static_cast<int>(report_.task().seeds()),
                               report_.experiment_steps(), report_.probe_steps()));
    report_.set_exhaustive_steps(budget.exhaustive_steps);
    report_.set_budget_steps(budget.budget_steps);
    std::fprintf(stderr, "%s", BudgetText(budget, report_.probe_steps(), ComputeSeconds()).c_str());
    uint64_t spent = report_.probe_steps();
    double seconds = 0;
    std::vector<TrainedRung> trained;
    for (size_t i = 0; i < budget.rungs.size() && !Standing(&candidates_).empty(); ++i) {
      ASSIGN_OR_RETURN(trained.emplace_back(), TrainRung(i + 1, budget.rungs[i], &seconds));
      for (const TrainedRun& run : trained.back().runs) spent += run.losses.size();
      const size_t places = budget.rungs[std::min(i + 1, budget.rungs.size() - 1)].candidates;
      JudgeRung(trained.back(), static_cast<uint32_t>(i + 1), report_.task().max_loss(), places,
                failures_, &candidates_);
      for (const TuneCandidate* one : Standing(&candidates_)) {
        Say(absl::StrCat("rung ", i + 1, ": ", one->name(), " goes on"));
      }
    }
    report_.set_spent_steps(spent);
    report_.set_spent_seconds(seconds);
    if (trained.size() < 2) {
      Conclude(/*trend=*/nullptr, &report_);
    } else {
      const Trend trend = TrendOf(trained.front(), trained.back());
      Conclude(&trend, &report_);
    }
    return absl::OkStatus();
  }

  // Returns all runs of a rung, those of `none` included; runs that ended before are not repeated.
  absl::StatusOr<std::vector<SweepRun>> RunsOf(const Rung& rung, TuneRung* record) {
    std::vector<const TuneCandidate*> rows = {&Named(candidates_, kNone)};
    for (const TuneCandidate* one : Standing(&candidates_)) {
      rows.push_back(one);
      record->add_candidates(one->name());
    }
    std::vector<SweepRun> runs;
    for (int i = 0; i < rung.seeds; ++i) {
      const uint64_t seed = question_.experiment.seed() + static_cast<uint64_t>(i);
      record->add_seeds(seed);
      for (const TuneCandidate* row : rows) {
        ASSIGN_OR_RETURN(Experiment experiment, Of(*row));
        ASSIGN_OR_RETURN(experiment, Shrunk(std::move(experiment), rung.steps));
        experiment.set_name(row->name());
        experiment.set_seed(seed);
        runs.push_back({absl::StrCat(row->name(), "-seed", seed), row->name(), seed, experiment});
      }
    }
    const Experiment& one = runs.front().experiment;
    ASSIGN_OR_RETURN(const uint64_t samples, TrainingSamples(one));
    ASSIGN_OR_RETURN(const uint64_t steps, StepsOf(one));
    record->set_steps(steps);
    record->set_epochs(one.epochs());
    record->set_samples(samples);
    return runs;
  }

  absl::StatusOr<TrainedRung> TrainRung(size_t number, const Rung& rung, double* seconds) {
    TuneRung* const record = report_.add_rungs();
    ASSIGN_OR_RETURN(const std::vector<SweepRun> runs, RunsOf(rung, record));
    SweepPlace place = {
        absl::StrCat(question_.dir, "/rung-", number), flags_.jobs, {}, flags_.session, stderr};
    ASSIGN_OR_RETURN(const auto lock, TakeSweepFolder(place.dir));
    Say(absl::StrCat("rung ", number, ": ", runs.size(), " runs of ", record->steps(), " steps"));
    ASSIGN_OR_RETURN(const SweptRuns swept, RunSweep(place, runs, &interruption_));
    RETURN_IF_ERROR(NoteFailures(runs, swept));
    TrainedRung trained;
    trained.steps = record->steps();
    Speeds speeds = SpeedsFrom(report_.speeds());
    for (const SweepRun& run : runs) {
      if (failures_.count(run.row) > 0) continue;
      const std::string folder = RunFolderOf(place.dir, run.name);
      ASSIGN_OR_RETURN(trained.runs.emplace_back(),
                       ReadRun(run, folder, &trained.is_loss, seconds));
      RETURN_IF_ERROR(LearnPayloads(run, folder, &speeds));
    }
    *report_.mutable_speeds() = RecordOf(speeds);
    for (TuneCandidate& one : candidates_) RETURN_IF_ERROR(Place(speeds, &one));
    return trained;
  }

  absl::Status NoteFailures(const std::vector<SweepRun>& runs, const SweptRuns& swept) {
    for (const auto& [name, why] : swept.failures) {
      const auto run = std::find_if(runs.begin(), runs.end(),
                                    [&, n = name](const SweepRun& one) { return one.name == n; });
      if (run == runs.end()) return absl::InternalError(absl::StrCat(name, ": ", why));
      if (run->row == kNone) return absl::InternalError(absl::StrCat("none: ", why));
      failures_[run->row] = why;
    }
    const bool all_failed = std::all_of(runs.begin(), runs.end(), [&](const SweepRun& run) {
      return run.row == kNone || failures_.count(run.row) > 0;
    });
    if (!all_failed) return absl::OkStatus();
    const auto& [row, why] = *failures_.begin();  // if all fail, no single candidate is to blame
    return absl::InternalError(absl::StrCat("every candidate's run failed: ", row, ": ", why));
  }

  static absl::StatusOr<TrainedRun> ReadRun(const SweepRun& run, const std::string& folder,
                                            bool* is_loss, double* seconds) {
    ASSIGN_OR_RETURN(const RunFiles files, ReadRunFiles(folder));
    ASSIGN_OR_RETURN(const Outcome outcome, OutcomeOf(run.row, files.summary));
    if (!outcome.compressed) return absl::InternalError(folder + ": has no evaluation");
    *is_loss = outcome.is_loss;
    const double scale = outcome.is_loss ? 1 : 100;
    TrainedRun trained = {run.row, run.seed, {}, scale * *outcome.compressed, std::nullopt};
    if (outcome.uncompressed) trained.uncompressed = scale * *outcome.uncompressed;
    for (const auto& step : files.metrics.steps) {
      const auto loss = step.find("loss");
      trained.losses.push_back(loss != step.end() && loss->is_number() ? loss->get<double>()
                                                                       : HUGE_VAL);
    }
    for (const EpochRecord& epoch : files.summary.epochs()) *seconds += epoch.seconds();
    return trained;
  }

  // Takes the payload sizes of this run. Its codecs' speeds are not taken, as other runs slowed
  // them down.
  absl::Status LearnPayloads(const SweepRun& run, const std::string& folder, Speeds* speeds) const {
    ASSIGN_OR_RETURN(const Speeds measured, SpeedsOfRun(folder, run.experiment));
    for (const auto& [coding, speed] : measured.codings) {
      const auto known = speeds->codings.emplace(coding, speeds->others).first;
      known->second.payload_per_byte = speed.payload_per_byte;
    }
    return absl::OkStatus();
  }

  const TuneFlags& flags_;
  const Question& question_;
  TuneReport& report_;
  TuneCandidates& candidates_;
  Interruption& interruption_;
  std::map<std::string, std::string> failures_;  // reason of the failed run, by candidate
};

// Returns the experiment with the chosen codec, as a file.
absl::StatusOr<std::string> TunedYaml(const Question& question, const TuneReport& report) {
  ASSIGN_OR_RETURN(Experiment tuned,
                   WithCandidate(question.experiment, Named(report.candidates(), report.choice())));
  tuned.set_name(absl::StrCat(question.experiment.name(), "-tuned"));
  const std::string text = absl::StrCat(
      "# ", report.choice(), ", which thinwire tune chose for ", question.task.link_mbit(),
      " Mbit/s and ", question.task.rtt_ms(), " ms of round trip.\n", ToYaml(tuned));
  ASSIGN_OR_RETURN(const Experiment again, ParseExperiment(text, "tuned.yaml", {}));
  if (Differences(tuned, again).empty()) return text;
  return absl::InternalError(
      absl::StrCat("tuned.yaml: reads back otherwise: ", Differences(tuned, again).front().path));
}

absl::Status Finish(const Question& question, const TuneReport& report, std::string* text) {
  ASSIGN_OR_RETURN(const std::string tuned, TunedYaml(question, report));
  RETURN_IF_ERROR(ReplaceFile(question.dir + "/tuned.yaml", tuned));
  absl::StrAppend(text, "Written: ", question.dir, "/tuned.yaml, ", question.dir, "/tune.json\n");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> TakeFolder(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return FileError(dir, "cannot make the folder", error.value());
  return FileLock::Take(dir + "/.tune.lock");
}

}  // namespace

int TuneCommand(const TuneFlags& flags, Interruption* interruption) {
  const absl::StatusOr<Question> question = Ask(flags);
  if (!question.ok()) return Complain(question.status(), kExitUsage);
  const auto lock = TakeFolder(question->dir);
  if (!lock.ok()) return Complain(lock.status(), kExitUsage);
  absl::StatusOr<TuneReport> report = OpenTune(question->dir, question->task);
  if (!report.ok()) return Complain(report.status(), kExitUsage);
  const absl::Status tuned = Tune(flags, *question, &*report, interruption).Run();
  if (interruption->seen() && !tuned.ok()) {
    return Complain(absl::CancelledError("interrupted; the same command goes on"),
                    kExitInterrupted);
  }
  if (absl::IsInvalidArgument(tuned)) return Complain(tuned, kExitUsage);
  if (!tuned.ok()) return Complain(tuned, kExitFailed);
  std::string text = TuneText(*report);
  const absl::Status finished = Finish(*question, *report, &text);
  if (!finished.ok()) return Complain(finished, kExitFailed);
  return PrintResult(flags.format == "json" ? JsonText(ToJson(*report), 2) + "\n" : text);
}

}  // namespace thinwire
