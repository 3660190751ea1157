#include "coordinator/tune/rung_runs.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/specs.h"
#include "coordinator/results/outcome.h"
#include "coordinator/results/run_files.h"
#include "coordinator/tune/library.h"

namespace thinwire {

absl::StatusOr<std::vector<SweepRun>> RunsOfRung(const Experiment& resolved, const Rung& rung,
                                                 TuneCandidates* candidates, TuneRung* record) {
  std::vector<const TuneCandidate*> rows = {&Named(*candidates, kNone)};
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

}  // namespace thinwire
