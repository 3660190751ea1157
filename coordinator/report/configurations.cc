#include "coordinator/report/configurations.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "coordinator/files/summary.h"
#include "coordinator/results/run_files.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

bool IsRun(const fs::path& dir) {
  std::error_code ignored;
  return fs::is_regular_file(dir / "experiment.yaml", ignored) &&
         (fs::is_regular_file(dir / "summary.json", ignored) ||
          fs::is_regular_file(dir / "metrics.jsonl", ignored));
}

// Returns the folders of runs in and below `path`, sorted. Folders within a run's folder are no
// runs.
absl::StatusOr<std::vector<std::string>> RunsBelow(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const bool is_there = fs::exists(path, error);
    const std::string met = is_there ? "is no folder" : error ? error.message() : "no such folder";
    return absl::NotFoundError(absl::StrCat(path, ": ", met, ", want that of a run or of runs"));
  }
  std::vector<std::string> found;
  if (IsRun(path)) {
    found.push_back(path);
    return found;
  }
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (!entry->is_directory(error) || !IsRun(entry->path())) continue;
    found.push_back(entry->path().string());
    entry.disable_recursion_pending();
  }
  if (error) return absl::InternalError(absl::StrCat(path, ": ", error.message()));
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(
        path, ": no run is in or below it, want a folder with experiment.yaml and metrics.jsonl"));
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Returns the value of a top-level field of a resolved experiment, which takes one line there.
std::string FieldOf(const std::string& yaml, const std::string& name) {
  const std::string field = name + ": ";
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(yaml, '\n'))) {
    if (absl::StartsWith(line, field)) return line.substr(field.size());
  }
  return "";
}

std::vector<LossPoint> Thinned(const std::vector<LossPoint>& all) {
  const size_t stretch = (all.size() + kLossPoints - 1) / kLossPoints;
  std::vector<LossPoint> points;
  for (size_t i = 0; i < all.size(); i += stretch) {
    const size_t end = std::min(all.size(), i + stretch);
    double sum = 0;
    for (size_t j = i; j < end; ++j) sum += all[j].loss;
    points.push_back({all[end - 1].step, sum / static_cast<double>(end - i)});
  }
  return points;
}

// Returns the losses of the steps whose loss is a number.
std::vector<LossPoint> Losses(const MetricsFile& metrics) {
  std::vector<LossPoint> losses;
  for (const auto& step : metrics.steps) {
    const auto loss = step.find("loss");
    if (loss != step.end() && loss->is_number()) losses.push_back({step["step"], *loss});
  }
  return losses;
}

absl::StatusOr<ReportedRun> ReadRun(const std::string& dir) {
  ReportedRun run;
  run.dir = dir;
  ASSIGN_OR_RETURN(run.experiment, ReadFile(dir + "/experiment.yaml"));
  absl::StatusOr<MetricsFile> metrics = ReadMetricsFile(dir);
  if (absl::IsNotFound(metrics.status())) metrics = MetricsFile();
  RETURN_IF_ERROR(metrics.status());
  run.losses = Thinned(Losses(*metrics));
  run.steps_per_epoch =
      static_cast<uint64_t>(std::count_if(metrics->steps.begin(), metrics->steps.end(),
                                          [](const auto& step) { return step["epoch"] == 1; }));
  auto summary = ReadSummary(dir);
  if (summary.ok()) {
    run.summary = *std::move(summary);
    return run;
  }
  if (!absl::IsNotFound(summary.status())) return summary.status();
  run.summary.set_status(kUnfinished);
  run.summary.set_name(FieldOf(run.experiment, "name"));
  uint64_t seed = 0;
  if (absl::SimpleAtoi(FieldOf(run.experiment, "seed"), &seed)) run.summary.set_seed(seed);
  for (EpochRecord& epoch : metrics->epochs) *run.summary.add_epochs() = std::move(epoch);
  return run;
}

// Returns the part of the resolved experiment that all seeds of a configuration share.
std::string SettingsOf(const ReportedRun& run) {
  std::string settings;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(run.experiment, '\n'))) {
    const bool is_own = absl::StartsWith(line, "name: ") || absl::StartsWith(line, "seed: ") ||
                        absl::StartsWith(line, "  dir: ");
    if (!is_own) absl::StrAppend(&settings, line, "\n");
  }
  return settings;
}

std::string FolderOf(const ReportedRun& run) {
  const std::filesystem::path dir = std::filesystem::path(run.dir).lexically_normal();
  return WithoutSeed((dir.has_filename() ? dir : dir.parent_path()).filename().string());
}

const Measured* Of(const TestRecord& test, Inference inference) {
  switch (inference) {
    case Inference::kCompressed:
      return test.has_compressed() ? &test.compressed() : nullptr;
    case Inference::kUncompressed:
      return test.has_uncompressed() ? &test.uncompressed() : nullptr;
    case Inference::kUncompressedRecalibrated:
      return test.has_uncompressed_recalibrated() ? &test.uncompressed_recalibrated() : nullptr;
  }
  return nullptr;
}

bool IsJudgedByLoss(const ReportedRun& run) {
  for (const EpochRecord& epoch : run.summary.epochs()) {
    for (const Inference inference : {Inference::kCompressed, Inference::kUncompressed}) {
      const Measured* measured = Of(epoch.test(), inference);
      if (measured != nullptr) return measured->has_perplexity() || !measured->has_accuracy();
    }
  }
  return false;
}

bool IsEvaluated(const ReportedRun& run) {
  return std::any_of(run.summary.epochs().begin(), run.summary.epochs().end(),
                     [](const EpochRecord& epoch) { return epoch.has_test(); });
}

}  // namespace

absl::StatusOr<std::vector<ReportedRun>> ReadRuns(const std::vector<std::string>& paths) {
  std::vector<ReportedRun> runs;
  std::set<std::string> met;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::vector<std::string> dirs, RunsBelow(path));
    for (const std::string& dir : dirs) {
      std::error_code ignored;
      if (!met.insert(fs::weakly_canonical(dir, ignored).string()).second) continue;
      ASSIGN_OR_RETURN(ReportedRun run, ReadRun(dir));
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

std::vector<Configuration> Configurations(const std::vector<ReportedRun>& runs) {
  std::vector<Configuration> all;
  std::map<std::string, size_t> by_settings;
  for (const ReportedRun& run : runs) {
    const auto [at, is_new] = by_settings.emplace(SettingsOf(run), all.size());
    if (is_new) all.push_back({WithoutSeed(run.summary.name()), {}, {}});
    all[at->second].runs.push_back(&run);
  }
  std::map<std::string, int> names;
  for (const Configuration& one : all) ++names[one.name];
  for (Configuration& one : all) {
    if (names[one.name] > 1) one.name = FolderOf(*one.runs.front());
    std::stable_sort(one.runs.begin(), one.runs.end(),
                     [](const ReportedRun* a, const ReportedRun* b) {
                       return a->summary.seed() < b->summary.seed();
                     });
    std::copy_if(one.runs.begin(), one.runs.end(), std::back_inserter(one.judged),
                 [](const ReportedRun* run) { return run->summary.status() == "completed"; });
    if (one.judged.empty()) one.judged = one.runs;
  }
  return all;
}

absl::StatusOr<Measure> MeasureOf(const std::vector<ReportedRun>& runs) {
  const ReportedRun* first = nullptr;
  for (const ReportedRun& run : runs) {
    if (!IsEvaluated(run)) continue;
    if (first == nullptr) first = &run;
    if (IsJudgedByLoss(run) == IsJudgedByLoss(*first)) continue;
    const ReportedRun& by_loss = IsJudgedByLoss(run) ? run : *first;
    const ReportedRun& other = IsJudgedByLoss(run) ? *first : run;
    return absl::InvalidArgumentError(
        absl::StrCat(by_loss.dir, " is judged by its loss and ", other.dir,
                     " by its accuracy; want reports of their own for both"));
  }
  return first != nullptr && IsJudgedByLoss(*first) ? Measure::kLoss : Measure::kAccuracy;
}

std::optional<double> Evaluated(const EpochRecord& epoch, Inference inference, Measure measure) {
  return Evaluated(epoch.test(), inference, measure);
}

std::optional<double> Evaluated(const TestRecord& test, Inference inference, Measure measure) {
  const Measured* measured = Of(test, inference);
  if (measured == nullptr) return std::nullopt;
  return measure == Measure::kAccuracy ? measured->accuracy() : measured->loss();
}

std::optional<double> Last(const ReportedRun& run, Inference inference, Measure measure) {
  std::optional<double> last;
  for (const EpochRecord& epoch : run.summary.epochs()) {
    if (const auto value = Evaluated(epoch, inference, measure)) last = value;
  }
  return last;
}

std::optional<double> Best(const ReportedRun& run, Inference inference, Measure measure) {
  std::optional<double> best;
  for (const EpochRecord& epoch : run.summary.epochs()) {
    const auto value = Evaluated(epoch, inference, measure);
    if (!value) continue;
    const bool is_better =
        !best || (measure == Measure::kAccuracy ? *value > *best : *value < *best);
    if (is_better) best = value;
  }
  return best;
}

Traffic Sent(const ReportedRun& run, size_t epochs) {
  Traffic sent;
  for (const EpochRecord& epoch : run.summary.epochs()) {
    if (epochs-- == 0) break;
    const auto add = [&sent](const EpochDirection& direction) {
      sent.raw_bytes += static_cast<double>(direction.raw_bytes());
      sent.wire_bytes += static_cast<double>(direction.wire_bytes());
    };
    for (const EpochBoundary& boundary : epoch.boundaries()) {
      add(boundary.activations());
      add(boundary.gradients());
    }
    add(epoch.replicas().contributions());
    add(epoch.replicas().average());
  }
  return sent;
}

Traffic Sent(const ReportedRun& run) {
  return Sent(run, static_cast<size_t>(run.summary.epochs_size()));
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<Reached> FirstReached(const ReportedRun& run, const ReportTarget& target) {
  std::optional<Reached> reached;
  double seconds = 0;
  size_t trained = 0;
  for (const EpochRecord& epoch : run.summary.epochs()) {
    seconds += epoch.seconds();
    ++trained;
    const auto value = Evaluated(epoch, target.inference, target.measure);
    if (!value) continue;
    const bool is_there =
        target.measure == Measure::kAccuracy ? *value >= target.value : *value <= target.value;
    if (!is_there) {
      reached.reset();
      continue;
    }
    if (reached) return reached;
    reached = Reached{epoch.epoch(), seconds, Sent(run, trained).wire_bytes};
  }
  return reached;
}

}  // namespace thinwire
