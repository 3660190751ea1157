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
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

bool IsRun(const fs::path& dir) {
  std::error_code ignored;
  return fs::is_regular_file(dir / "experiment.yaml", ignored) &&
         (fs::is_regular_file(dir / "summary.json", ignored) ||
          fs::is_regular_file(dir / "metrics.jsonl", ignored));
}

// Folders of runs in and below `path`, sorted. What stands in a run's folder is no run.
absl::StatusOr<std::vector<std::string>> RunsBelow(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return absl::NotFoundError(
        absl::StrCat(path, ": no such folder, want that of a run or of runs"));
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

// The value of a top-level field of a resolved experiment, which has one line for it.
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

// Steps into `losses`, and epochs into `epochs`. A last line without its end was broken off.
absl::Status ReadMetrics(const std::string& path, std::vector<LossPoint>* losses, Summary* epochs) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  int number = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    ++number;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const auto type = json.is_object() ? json.find("type") : json.end();
    if (!json.is_object() || type == json.end() || !type->is_string()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ":", number, ": no object with a type, want a line of a run's metrics"));
    }
    if (*type == "epoch") {
      RETURN_IF_ERROR(FromJson(line, absl::StrCat(path, ":", number), epochs->add_epochs()));
      continue;
    }
    const auto step = json.find("step"), loss = json.find("loss");
    if (*type != "step" || step == json.end() || !step->is_number()) continue;
    if (loss != json.end() && loss->is_number()) losses->push_back({*step, *loss});
  }
  return absl::OkStatus();
}

absl::StatusOr<ReportedRun> ReadRun(const std::string& dir) {
  ReportedRun run;
  run.dir = dir;
  ASSIGN_OR_RETURN(run.experiment, ReadFile(dir + "/experiment.yaml"));
  Summary seen;
  std::vector<LossPoint> losses;
  const absl::Status metrics = ReadMetrics(dir + "/metrics.jsonl", &losses, &seen);
  if (!absl::IsNotFound(metrics)) RETURN_IF_ERROR(metrics);
  run.losses = Thinned(losses);
  auto summary = ReadSummary(dir);
  if (summary.ok()) {
    run.summary = *std::move(summary);
    return run;
  }
  if (!absl::IsNotFound(summary.status())) return summary.status();
  seen.set_status(kUnfinished);
  seen.set_name(FieldOf(run.experiment, "name"));
  uint64_t seed = 0;
  if (absl::SimpleAtoi(FieldOf(run.experiment, "seed"), &seed)) seen.set_seed(seed);
  run.summary = std::move(seen);
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
