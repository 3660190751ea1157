#include "coordinator/report/runs.h"

#include <algorithm>
#include <filesystem>
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

}  // namespace thinwire
