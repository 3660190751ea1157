#include "coordinator/results/comparison.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "config/differences.h"
#include "config/experiment.h"
#include "coordinator/results/outcome.h"
#include "coordinator/results/run_files.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct ReadRun {
  RunSet::Run place;
  RunFiles files;
};
struct Pair {
  ReadRun left, right;
};

bool IsRun(const fs::path& dir) {
  std::error_code ignored;
  return fs::exists(dir / "summary.json", ignored) && fs::exists(dir / "experiment.yaml", ignored);
}

absl::StatusOr<std::vector<ReadRun>> ReadAll(const RunSet& set) {
  std::vector<ReadRun> runs;
  for (const RunSet::Run& run : set.runs) {
    ASSIGN_OR_RETURN(RunFiles files, ReadRunFiles(run.dir));
    runs.push_back({run, std::move(files)});
  }
  return runs;
}

std::string Shown(const Json& value) { return value.is_null() ? "-" : value.dump(); }

// Returns the fields that differ, without name and seed, each once with the first pair's values.
absl::StatusOr<std::string> ConfigurationText(const std::vector<Pair>& pairs) {
  std::string text;
  for (const Pair& pair : pairs) {
    const auto of = [](const ReadRun& run) {
      return ParseResolved(run.files.experiment, run.place.dir + "/experiment.yaml");
    };
    ASSIGN_OR_RETURN(const Experiment left, of(pair.left));
    ASSIGN_OR_RETURN(const Experiment right, of(pair.right));
    std::string lines;
    for (const FieldDifference& field : Differences(left, right)) {
      absl::StrAppend(&lines, "  ", field.path, ": ", field.left.empty() ? "-" : field.left, " | ",
                      field.right.empty() ? "-" : field.right, "\n");
    }
    const std::string head = pairs.size() == 1 ? "" : absl::StrCat(" ", pair.left.place.name);
    absl::StrAppend(&text, "configuration", head, ": ",
                    lines.empty() ? "equal\n" : "left | right\n", lines);
  }
  return text;
}

// Returns the loss of a step; null if it is absent or not a number.
Json LossOf(const Json& step) { return step.value("loss", Json()); }

// Returns where the losses of the steps first differ in any bit.
std::string DivergenceText(const Pair& pair) {
  const std::vector<Json>&left = pair.left.files.metrics.steps,
        &right = pair.right.files.metrics.steps;
  const size_t both = std::min(left.size(), right.size());
  for (size_t i = 0; i < both; ++i) {
    if (left[i]["step"] == right[i]["step"] && LossOf(left[i]) == LossOf(right[i])) continue;
    return absl::StrCat("first diverging step: ", Shown(left[i]["step"]), " of epoch ",
                        Shown(left[i]["epoch"]), ", loss ", Shown(LossOf(left[i])), " | ",
                        Shown(LossOf(right[i])), "\n");
  }
  const std::string steps = absl::StrCat("losses are equal in ", both, " steps");
  return left.size() == right.size()
             ? steps + ", all of both\n"
             : absl::StrCat(steps, "; left has ", left.size(), ", right ", right.size(), "\n");
}

// Returns "1.2345 1.3456 (+0.1111)".
std::string Both(double left, double right) {
  return absl::StrFormat("%.4f %.4f (%+.4f)", left, right, right - left);
}

// Does the same, or returns "-" unless both epochs were tested so.
std::string Both(const EpochRecord& left, const EpochRecord& right,
                 double (Measured::*value)() const) {
  if (!left.test().has_compressed() || !right.test().has_compressed()) return "-";
  return Both((left.test().compressed().*value)(), (right.test().compressed().*value)());
}

std::string EpochsText(const Pair& pair) {
  constexpr char kLine[] = "%5s  %24s  %24s  %24s\n";
  std::string text =
      absl::StrFormat(kLine, "epoch", "train loss", "test loss, codecs", "test accuracy, codecs");
  std::map<uint32_t, const EpochRecord*> right;
  for (const EpochRecord& epoch : pair.right.files.metrics.epochs) right[epoch.epoch()] = &epoch;
  for (const EpochRecord& epoch : pair.left.files.metrics.epochs) {
    const auto other = right.find(epoch.epoch());
    if (other == right.end()) continue;
    absl::StrAppend(&text,
                    absl::StrFormat(kLine, absl::StrCat(epoch.epoch()),
                                    Both(epoch.train().loss(), other->second->train().loss()),
                                    Both(epoch, *other->second, &Measured::loss),
                                    Both(epoch, *other->second, &Measured::accuracy)));
  }
  return text;
}

// Returns right minus left of each row, over the seeds that both have.
std::string OutcomesText(const std::vector<Pair>& pairs) {
  std::vector<std::string> rows;
  std::map<std::string, std::pair<std::vector<Outcome>, std::vector<Outcome>>> by_row;
  for (const Pair& pair : pairs) {
    const std::string& row = pair.left.place.row;
    const auto left = OutcomeOf(row, pair.left.files.summary);
    const auto right = OutcomeOf(row, pair.right.files.summary);
    if (!left.ok() || !right.ok()) continue;
    if (by_row.find(row) == by_row.end()) rows.push_back(row);
    by_row[row].first.push_back(*left);
    by_row[row].second.push_back(*right);
  }
  std::string text;
  for (const std::string& row : rows) {
    const auto& [left, right] = by_row[row];
    const char* unit = left[0].is_loss ? "nats" : "points of accuracy";
    for (const bool codecs : {true, false}) {
      const std::string difference =
          PairedText(left, right, codecs ? &Outcome::compressed : &Outcome::uncompressed);
      if (difference.empty()) continue;
      absl::StrAppend(&text, "  ", row.empty() ? "" : row + ", ",
                      codecs ? "with codecs: " : "without: ", difference, " ", unit, " of ",
                      left.size(), left.size() == 1 ? " pair\n" : " pairs\n");
    }
  }
  return text.empty() ? "" : "right less left, paired by seed, with 95 % intervals:\n" + text;
}

std::vector<Pair> Paired(const RunSet& left_set, const RunSet& right_set, std::vector<ReadRun> left,
                         const std::vector<ReadRun>& right) {
  std::vector<Pair> pairs;
  if (left_set.is_one && right_set.is_one) {
    pairs.push_back({std::move(left[0]), right[0]});
    return pairs;
  }
  for (ReadRun& l : left) {
    const auto r = std::find_if(right.begin(), right.end(), [&](const ReadRun& run) {
      return run.place.row == l.place.row && run.files.summary.seed() == l.files.summary.seed();
    });
    if (r != right.end()) pairs.push_back({std::move(l), *r});
  }
  return pairs;
}

}  // namespace

absl::StatusOr<RunSet> FindRuns(const std::string& dir) {
  RunSet set;
  set.dir = dir;
  if (IsRun(dir)) {
    set.is_one = true;
    set.runs.push_back({"", dir, dir});
    return set;
  }
  std::error_code error;
  const fs::path below =
      fs::is_directory(fs::path(dir) / "runs", error) ? fs::path(dir) / "runs" : fs::path(dir);
  for (const auto& entry : fs::directory_iterator(below, error)) {
    const std::string name = entry.path().filename().string();
    if (IsRun(entry.path())) set.runs.push_back({WithoutSeed(name), name, entry.path().string()});
  }
  std::sort(set.runs.begin(), set.runs.end(),
            [](const RunSet::Run& a, const RunSet::Run& b) { return a.name < b.name; });
  if (!set.runs.empty()) return set;
  return absl::NotFoundError(absl::StrCat(
      dir, ": no run with a summary is recorded here, nor in a folder below, as a sweep has them"));
}

absl::StatusOr<std::string> Comparison(const RunSet& left, const RunSet& right) {
  ASSIGN_OR_RETURN(std::vector<ReadRun> ours, ReadAll(left));
  ASSIGN_OR_RETURN(const std::vector<ReadRun> theirs, ReadAll(right));
  const std::vector<Pair> pairs = Paired(left, right, std::move(ours), theirs);
  if (pairs.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no run in ", left.dir,
                                                   " has the row and the "
                                                   "seed of one in ",
                                                   right.dir));
  }
  std::string text = absl::StrCat("left:  ", left.dir, "\nright: ", right.dir, "\n");
  ASSIGN_OR_RETURN(const std::string configuration, ConfigurationText(pairs));
  absl::StrAppend(&text, configuration);
  for (const Pair& pair : pairs) {
    if (pairs.size() > 1) absl::StrAppend(&text, "\n", pair.left.place.name, "\n");
    absl::StrAppend(&text, DivergenceText(pair), EpochsText(pair));
  }
  const std::string outcomes = OutcomesText(pairs);
  if (!outcomes.empty()) absl::StrAppend(&text, "\n", outcomes);
  return text;
}

}  // namespace thinwire
