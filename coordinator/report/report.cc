#include "coordinator/report/report.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "coordinator/report/tables.h"
#include "coordinator/results/paired.h"
#include "coordinator/trace/chrome.h"
#include "coordinator/trace/summary.h"
#include "coordinator/trace/timeline.h"

namespace thinwire {
namespace {

constexpr double kAccuracyMargin = 0.01;  // target is one point below the baseline's accuracy
constexpr double kLossMargin = 0.02;      // target is this many nats above the baseline's loss

bool IsUncompressed(const Configuration& configuration) {
  const Summary& summary = configuration.runs.front()->summary;
  const auto is_none = [](const DirectionRecord& record) {
    return record.codec().empty() || record.codec() == "none";
  };
  return (summary.boundaries_size() > 0 || summary.has_replicas()) &&
         is_none(summary.replicas().contributions()) && is_none(summary.replicas().average()) &&
         std::all_of(summary.boundaries().begin(), summary.boundaries().end(),
                     [](const BoundaryRecord& boundary) {
                       return boundary.activations().codec() == "none" &&
                              boundary.gradients().codec() == "none";
                     });
}

absl::StatusOr<size_t> BaselineOf(const std::vector<Configuration>& all, const std::string& name) {
  const auto is_it = [&name](const Configuration& one) {
    return name.empty() ? IsUncompressed(one) : one.name == name;
  };
  const auto found = std::find_if(all.begin(), all.end(), is_it);
  if (found != all.end()) return static_cast<size_t>(found - all.begin());
  if (name.empty()) return 0;
  return absl::InvalidArgumentError(
      absl::StrCat("--baseline ", name, ", want one of ",
                   absl::StrJoin(all, ", ", [](std::string* to, const Configuration& one) {
                     absl::StrAppend(to, one.name);
                   })));
}

// Returns the target; nothing if none was given and the baseline was never evaluated.
std::optional<double> TargetValue(const Configuration& baseline, Inference inference,
                                  Measure measure, std::optional<double> wanted) {
  if (wanted) return wanted;
  std::vector<double> values;
  for (const ReportedRun* run : baseline.judged) {
    if (const auto value = Last(*run, inference, measure)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return MeanOf(values) + (measure == Measure::kAccuracy ? -kAccuracyMargin : kLossMargin);
}

// Means over seeds at each x; a seed without a value at x does not count there.
class MeanCurve {
 public:
  void Add(double x, double y) {
    auto& [sum, count] = at_[x];
    sum += y;
    ++count;
  }
  std::vector<ChartPoint> Points() const {
    std::vector<ChartPoint> points;
    for (const auto& [x, mean] : at_) points.push_back({x, mean.first / mean.second, ""});
    return points;
  }

 private:
  std::map<double, std::pair<double, int>> at_;
};

ReportedChart EvaluationChart(const std::vector<Configuration>& all, Measure measure) {
  ReportedChart chart;
  const bool is_accuracy = measure == Measure::kAccuracy;
  chart.chart.title = is_accuracy ? "Test accuracy" : "Validation loss";
  chart.chart.x_label = "epoch";
  chart.chart.y_label = is_accuracy ? "percent" : "nats";
  chart.note = "Means over seeds. Full lines: with the codecs at inference; dashed: without them.";
  for (size_t i = 0; i < all.size(); ++i) {
    for (const Inference inference : {Inference::kCompressed, Inference::kUncompressed}) {
      MeanCurve curve;
      for (const ReportedRun* run : all[i].judged) {
        for (const EpochRecord& epoch : run->summary.epochs()) {
          const auto add = [&](double x, const TestRecord& test) {
            const auto value = Evaluated(test, inference, measure);
            if (value) curve.Add(x, Scaled(*value, measure));
          };
          add(epoch.epoch(), epoch.test());
          for (const EvaluationRecord& after : epoch.evaluations()) {
            const auto steps = static_cast<double>(std::max<uint64_t>(1, run->steps_per_epoch));
            add(static_cast<double>(after.step()) / steps, after.test());
          }
        }
      }
      ChartSeries series;
      series.name = all[i].name;
      series.colour = static_cast<int>(i);
      series.is_secondary = inference == Inference::kUncompressed;
      series.points = curve.Points();
      chart.chart.series.push_back(std::move(series));
    }
  }
  return chart;
}

ReportedChart LossChart(const std::vector<Configuration>& all) {
  ReportedChart chart;
  chart.chart.title = "Training loss";
  chart.chart.x_label = "optimizer step";
  chart.chart.y_label = "nats";
  chart.note = "Means over seeds and, of long runs, over equal stretches of steps.";
  for (size_t i = 0; i < all.size(); ++i) {
    MeanCurve curve;
    for (const ReportedRun* run : all[i].judged) {
      for (const LossPoint& point : run->losses) curve.Add(point.step, point.loss);
    }
    ChartSeries series;
    series.name = all[i].name;
    series.colour = static_cast<int>(i);
    series.points = curve.Points();
    chart.chart.series.push_back(std::move(series));
  }
  return chart;
}

// Returns the points that no other point dominates by sending fewer bytes and reaching as much.
ChartSeries ParetoFront(const std::vector<ChartPoint>& points, Measure measure) {
  std::vector<ChartPoint> sorted = points;
  std::sort(sorted.begin(), sorted.end(),
            [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  ChartSeries front;
  front.name = "Pareto front";
  front.colour = ChartSeries::kNeutral;
  for (const ChartPoint& point : sorted) {
    const bool is_better =
        front.points.empty() || (measure == Measure::kAccuracy ? point.y > front.points.back().y
                                                               : point.y < front.points.back().y);
    if (is_better) front.points.push_back({point.x, point.y, ""});
  }
  return front;
}

ReportedChart FrontChart(const std::vector<Configuration>& all, Measure measure) {
  ReportedChart chart;
  const bool is_accuracy = measure == Measure::kAccuracy;
  chart.chart.title = is_accuracy ? "Accuracy against bytes" : "Loss against bytes";
  chart.chart.x_label = "megabytes sent in training (logarithmic)";
  chart.chart.y_label = is_accuracy ? "percent, with the codecs" : "nats, with the codecs";
  chart.chart.is_log_x = true;
  chart.note =
      "The last evaluated epoch, means over seeds. The line is the Pareto front: nothing "
      "left of it is as good.";
  std::vector<ChartPoint> points;
  std::vector<ChartSeries> marks;
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<double> values, bytes;
    for (const ReportedRun* run : all[i].judged) {
      const auto value = Last(*run, Inference::kCompressed, measure);
      const double sent = Sent(*run).wire_bytes;
      if (!value || sent <= 0) continue;
      values.push_back(Scaled(*value, measure));
      bytes.push_back(sent / 1e6);
    }
    if (values.empty()) continue;
    ChartSeries series;
    series.name = all[i].name;
    series.colour = static_cast<int>(i);
    series.points = {{MeanOf(bytes), MeanOf(values), all[i].name}};
    points.push_back(series.points.front());
    marks.push_back(std::move(series));
  }
  chart.chart.series.push_back(ParetoFront(points, measure));
  for (ChartSeries& series : marks) chart.chart.series.push_back(std::move(series));
  return chart;
}

// Returns the last traced step of each configuration that was traced, from its first run.
absl::StatusOr<std::vector<ReportedTimeline>> Timelines(const std::vector<Configuration>& all) {
  std::vector<ReportedTimeline> timelines;
  for (const Configuration& one : all) {
    for (const ReportedRun* run : one.runs) {
      const absl::StatusOr<RunTrace> trace = ReadTrace(run->dir);
      if (absl::IsNotFound(trace.status())) continue;
      RETURN_IF_ERROR(trace.status());
      ASSIGN_OR_RETURN(const TraceSummary summary, Summarize(*trace, std::nullopt));
      ASSIGN_OR_RETURN(std::string svg, TimelineSvg(*trace, summary.steps.last()));
      timelines.push_back({one.name, std::move(svg)});
      break;
    }
  }
  return timelines;
}

std::string TitleOf(const std::vector<ReportedRun>& runs, const std::string& title) {
  if (!title.empty()) return title;
  const std::filesystem::path dir = std::filesystem::path(runs.front().dir).lexically_normal();
  return runs.size() == 1 ? dir.filename().string() : dir.parent_path().filename().string();
}

}  // namespace

absl::StatusOr<Report> ReportOf(const std::vector<ReportedRun>& runs, const ReportFlags& flags) {
  ASSIGN_OR_RETURN(const Measure measure, MeasureOf(runs));
  const std::vector<Configuration> all = Configurations(runs);
  ASSIGN_OR_RETURN(const size_t baseline, BaselineOf(all, flags.baseline));
  Report report;
  report.title = TitleOf(runs, flags.title);
  for (const Configuration& one : all) {
    report.names.push_back(one.name);
    report.experiments.emplace_back(one.name, one.runs.front()->experiment);
  }
  report.tables.push_back(SummaryTable(all, measure, baseline));
  ReportTarget target;
  target.measure = measure;
  target.inference =
      flags.inference == "uncompressed" ? Inference::kUncompressed : Inference::kCompressed;
  const auto value = TargetValue(all[baseline], target.inference, measure, flags.target);
  if (value) {
    target.value = *value;
    report.tables.push_back(TargetTable(all, target));
  }
  report.tables.push_back(BoundaryTable(all));
  report.tables.push_back(RunTable(all));
  report.charts = {EvaluationChart(all, measure), LossChart(all), FrontChart(all, measure)};
  ASSIGN_OR_RETURN(report.timelines, Timelines(all));
  return report;
}

}  // namespace thinwire
