#include "coordinator/report/configurations.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/results/run_files.h"

namespace thinwire {
namespace {

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

const Measured* Of(const EpochRecord& epoch, Inference inference) {
  if (!epoch.has_test()) return nullptr;
  const TestRecord& test = epoch.test();
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

bool IsLanguage(const ReportedRun& run) {
  for (const EpochRecord& epoch : run.summary.epochs()) {
    for (const Inference inference : {Inference::kCompressed, Inference::kUncompressed}) {
      const Measured* measured = Of(epoch, inference);
      if (measured != nullptr) return measured->has_perplexity();
    }
  }
  return false;
}

bool IsEvaluated(const ReportedRun& run) {
  return std::any_of(run.summary.epochs().begin(), run.summary.epochs().end(),
                     [](const EpochRecord& epoch) { return epoch.has_test(); });
}

}  // namespace

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
    if (IsLanguage(run) == IsLanguage(*first)) continue;
    const ReportedRun& language = IsLanguage(run) ? run : *first;
    const ReportedRun& other = IsLanguage(run) ? *first : run;
    return absl::InvalidArgumentError(absl::StrCat(language.dir, " trained a language model and ",
                                                   other.dir,
                                                   " did not; want reports of their own for both"));
  }
  return first != nullptr && IsLanguage(*first) ? Measure::kLoss : Measure::kAccuracy;
}

std::optional<double> Evaluated(const EpochRecord& epoch, Inference inference, Measure measure) {
  const Measured* measured = Of(epoch, inference);
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

}  // namespace thinwire
