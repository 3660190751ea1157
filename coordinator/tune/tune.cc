#include "coordinator/tune/tune.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "config/differences.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/plan/run_speeds.h"
#include "coordinator/probe/configurations.h"
#include "coordinator/probe/probe.h"
#include "coordinator/results/outcome.h"
#include "coordinator/results/run_files.h"
#include "coordinator/tune/library.h"
#include "coordinator/tune/record.h"
#include "coordinator/tune/text.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

void Say(const std::string& line) { std::fprintf(stderr, "%s\n", PrintableLine(line).c_str()); }

class Tune {
 public:
  Tune(const TuneQuestion& question, TuneReport* report, Interruption* interruption)
      : question_(question),
        report_(*report),
        candidates_(*report->mutable_candidates()),
        interruption_(*interruption) {}

  absl::Status Run() {
    if (!report_.choice().empty()) return absl::OkStatus();
    if (!report_.has_speeds()) {
      RETURN_IF_ERROR(AddCandidates(question_.experiment, question_.tokens, &report_));
      report_.set_measure(question_.tokens ? "loss" : "accuracy");
      ASSIGN_OR_RETURN(const uint64_t steps, TrainingSteps(question_.experiment));
      report_.set_experiment_steps(steps);
      RETURN_IF_ERROR(Measure());
      CutByPlan(&candidates_);
      RETURN_IF_ERROR(Save());
    }
    if (report_.probe_steps() == 0 && !StillStanding(&candidates_).empty()) {
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
    RETURN_IF_ERROR(MeasureSpeeds(question_.speeds, pointers,
                                  question_.experiment.pipeline().threads(), question_.session,
                                  &interruption_, &speeds));
    *report_.mutable_speeds() = RecordOf(speeds);
    for (TuneCandidate& one : candidates_) RETURN_IF_ERROR(Place(speeds, &one));
    return absl::OkStatus();
  }

  // The candidate's step on the link, with the fastest of the microbatches that are to be tried.
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
      one.set_step_seconds(plan.steps.front().seconds());
      one.set_wire_bytes(static_cast<double>(StepWireBytes(plan)));
      if (best.microbatches() == 0 || one.step_seconds() < best.step_seconds()) best = one;
    }
    *candidate = std::move(best);
    return absl::OkStatus();
  }

  // Both directions as the candidate has them at every cut; nothing where cuts differ or layers
  // stand at them, which a probe cannot tell apart from the model.
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
    for (TuneCandidate* const one : StillStanding(&candidates_)) {
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
                                                          question_.session, &interruption_));
      RETURN_IF_ERROR(RunProbe(task, session->fleet(), Say, &found));
    }
    interruption_.OnFirst({});
    for (size_t i = 0; i < probed.size(); ++i) {
      probed[i]->set_gradient_error(found.rows(static_cast<int>(i)).all().relative_error().mean());
    }
    *report_.mutable_warnings() = found.warnings();
    return absl::OkStatus();
  }

  // Returns the seconds that this machine computes in a step, whatever the link.
  double ComputeSeconds() const {
    double sample = 0, update = 0;
    for (const TuneBlock& block : report_.speeds().blocks()) {
      sample += block.forward() + block.backward();
      update += block.update();
    }
    return sample * question_.experiment.data().batch_size() + update;
  }

  absl::Status Train() {
    const size_t count = StillStanding(&candidates_).size();
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
    for (size_t i = 0; i < budget.rungs.size() && !StillStanding(&candidates_).empty(); ++i) {
      ASSIGN_OR_RETURN(trained.emplace_back(), TrainRung(i + 1, budget.rungs[i], &seconds));
      for (const TrainedRun& run : trained.back().runs) spent += run.losses.size();
      const size_t places = budget.rungs[std::min(i + 1, budget.rungs.size() - 1)].candidates;
      JudgeRung(trained.back(), static_cast<uint32_t>(i + 1), report_.task().max_loss(), places,
                failures_, &candidates_);
      for (const TuneCandidate* one : StillStanding(&candidates_)) {
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

  absl::StatusOr<TrainedRung> TrainRung(size_t number, const Rung& rung, double* seconds) {
    TuneRung* const record = report_.add_rungs();
    ASSIGN_OR_RETURN(const std::vector<SweepRun> runs,
                     RunsOfRung(question_.experiment, rung, &candidates_, record));
    SweepPlace place = {absl::StrCat(question_.dir, "/rung-", number),
                        question_.jobs,
                        {},
                        question_.session,
                        stderr};
    ASSIGN_OR_RETURN(const auto lock, TakeSweepFolder(place.dir));
    Say(absl::StrCat("rung ", number, ": ", runs.size(), " runs of ", record->steps(), " steps"));
    ASSIGN_OR_RETURN(const SweptRuns swept, RunSweep(place, runs, &interruption_));
    RETURN_IF_ERROR(NoteFailures(runs, swept, &failures_));
    TrainedRung trained;
    trained.steps = record->steps();
    Speeds speeds = SpeedsFrom(report_.speeds());
    for (const SweepRun& run : runs) {
      if (failures_.count(run.row) > 0) continue;
      const std::string folder = RunFolderOf(place.dir, run.name);
      ASSIGN_OR_RETURN(trained.runs.emplace_back(),
                       ReadTrainedRun(run, folder, &trained.is_loss, seconds));
      RETURN_IF_ERROR(LearnPayloads(run, folder, &speeds));
    }
    *report_.mutable_speeds() = RecordOf(speeds);
    for (TuneCandidate& one : candidates_) RETURN_IF_ERROR(Place(speeds, &one));
    return trained;
  }

  // Payloads as long as those of this run; how fast its codecs were is the others' doing too.
  absl::Status LearnPayloads(const SweepRun& run, const std::string& folder, Speeds* speeds) const {
    ASSIGN_OR_RETURN(const Speeds measured, SpeedsOfRun(folder, run.experiment));
    for (const auto& [coding, speed] : measured.codings) {
      const auto known = speeds->codings.emplace(coding, speeds->others).first;
      known->second.payload_per_byte = speed.payload_per_byte;
    }
    return absl::OkStatus();
  }

  const TuneQuestion& question_;
  TuneReport& report_;
  TuneCandidates& candidates_;
  Interruption& interruption_;
  TuneFailures failures_;
};

// The experiment with the choice, as a file that gives it again.
absl::StatusOr<std::string> TunedYaml(const TuneQuestion& question, const TuneReport& report) {
  ASSIGN_OR_RETURN(
      Experiment tuned,
      WithCandidate(question.experiment, CandidateNamed(report.candidates(), report.choice())));
  tuned.set_name(absl::StrCat(question.experiment.name(), "-tuned"));
  const std::string text = absl::StrCat(
      "# ", report.choice(), ", which thinwire tune chose for ", question.task.link_mbit(),
      " Mbit/s and ", question.task.rtt_ms(), " ms of round trip.\n", ToYaml(tuned));
  ASSIGN_OR_RETURN(const Experiment again, ParseExperiment(text, "tuned.yaml", {}));
  if (Differences(tuned, again).empty()) return text;
  return absl::InternalError(
      absl::StrCat("tuned.yaml: reads back otherwise: ", Differences(tuned, again).front().path));
}

}  // namespace

absl::StatusOr<std::vector<SweepRun>> RunsOfRung(const Experiment& resolved, const Rung& rung,
                                                 TuneCandidates* candidates, TuneRung* record) {
  std::vector<const TuneCandidate*> rows = {&CandidateNamed(*candidates, kNone)};
  for (const TuneCandidate* one : StillStanding(candidates)) {
    rows.push_back(one);
    record->add_candidates(one->name());
  }
  std::vector<SweepRun> runs;
  for (int i = 0; i < rung.seeds; ++i) {
    const uint64_t seed = resolved.seed() + static_cast<uint64_t>(i);
    record->add_seeds(seed);
    for (const TuneCandidate* row : rows) {
      ASSIGN_OR_RETURN(Experiment experiment, WithCandidate(resolved, *row));
      ASSIGN_OR_RETURN(experiment, Shrunk(std::move(experiment), rung.steps));
      experiment.set_name(row->name());
      experiment.set_seed(seed);
      runs.push_back({absl::StrCat(row->name(), "-seed", seed), row->name(), seed, experiment});
    }
  }
  const Experiment& one = runs.front().experiment;
  ASSIGN_OR_RETURN(const uint64_t samples, TrainingSamples(one));
  ASSIGN_OR_RETURN(const uint64_t steps, TrainingSteps(one));
  record->set_steps(steps);
  record->set_epochs(one.epochs());
  record->set_samples(samples);
  return runs;
}

absl::Status NoteFailures(const std::vector<SweepRun>& runs, const SweptRuns& swept,
                          TuneFailures* failures) {
  for (const auto& [name, why] : swept.failures) {
    const auto run = std::find_if(runs.begin(), runs.end(),
                                  [&, n = name](const SweepRun& one) { return one.name == n; });
    if (run == runs.end()) return absl::InternalError(absl::StrCat(name, ": ", why));
    if (run->row == kNone) return absl::InternalError(absl::StrCat("none: ", why));
    (*failures)[run->row] = why;
  }
  const bool all_failed = std::all_of(runs.begin(), runs.end(), [&](const SweepRun& run) {
    return run.row == kNone || failures->count(run.row) > 0;
  });
  if (!all_failed) return absl::OkStatus();
  const auto& [row, why] = *failures->begin();  // a fault of none of them
  return absl::InternalError(absl::StrCat("every candidate's run failed: ", row, ": ", why));
}

absl::StatusOr<TrainedRun> ReadTrainedRun(const SweepRun& run, const std::string& folder,
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

absl::Status RunTune(const TuneQuestion& question, TuneReport* report, Interruption* interruption) {
  return Tune(question, report, interruption).Run();
}

absl::Status WriteTuned(const TuneQuestion& question, const TuneReport& report) {
  ASSIGN_OR_RETURN(const std::string tuned, TunedYaml(question, report));
  return ReplaceFile(question.dir + "/tuned.yaml", tuned);
}

}  // namespace thinwire
