#include "coordinator/report/chart.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"

namespace thinwire {
namespace {

constexpr double kWidth = 720, kHeight = 330;
constexpr double kLeftMargin = 58, kRightMargin = 24, kTopMargin = 34,
                 kBottomMargin = 46;  // around the plot
constexpr double kMostTicks = 7;

struct Bounds {
  double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
};

Bounds BoundsOf(const Chart& chart) {
  Bounds all;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      all.x0 = std::min(all.x0, point.x);
      all.x1 = std::max(all.x1, point.x);
      all.y0 = std::min(all.y0, point.y);
      all.y1 = std::max(all.y1, point.y);
    }
  }
  return all;
}

// Mapping from values to positions in the plot.
struct Axes {
  std::vector<double> x_ticks, y_ticks;
  bool is_log_x = false;

  double X(double x) const {
    const auto of = [this](double v) { return is_log_x ? std::log(v) : v; };
    const double share = (of(x) - of(x_ticks.front())) / (of(x_ticks.back()) - of(x_ticks.front()));
    return kLeftMargin + share * (kWidth - kLeftMargin - kRightMargin);
  }
  double Y(double y) const {
    const double share = (y - y_ticks.front()) / (y_ticks.back() - y_ticks.front());
    return kHeight - kBottomMargin - share * (kHeight - kTopMargin - kBottomMargin);
  }
};

std::string Text(double x, double y, const char* anchor, const char* style, std::string_view text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n",
                         x, y, anchor, style, MarkupText(text));
}

std::string Grid(const Chart& chart, const Axes& axes) {
  std::string svg;
  const double right = kWidth - kRightMargin, bottom = kHeight - kBottomMargin;
  for (const double y : axes.y_ticks) {
    absl::StrAppendFormat(&svg, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", kLeftMargin,
                          axes.Y(y), right);
    svg += Text(kLeftMargin - 8, axes.Y(y) + 4, "end", "tick", absl::StrFormat("%.6g", y));
  }
  for (const double x : axes.x_ticks) {
    absl::StrAppendFormat(&svg, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", axes.X(x),
                          kTopMargin, bottom);
    svg += Text(axes.X(x), bottom + 17, "middle", "tick", absl::StrFormat("%.6g", x));
  }
  svg += Text(0, 16, "start", "title", chart.title);
  svg += Text(right, kHeight - 6, "end", "tick", chart.x_label);
  svg += Text(right, 16, "end", "tick", chart.y_label);
  return svg;
}

std::string ColourClass(const ChartSeries& series) {
  return series.colour == ChartSeries::kNeutral ? "neutral"
                                                : absl::StrCat("c", series.colour % kColours);
}

std::string Line(const ChartSeries& series, const Axes& axes) {
  std::string path;
  for (const ChartPoint& point : series.points) {
    absl::StrAppendFormat(&path, "%c%.1f %.1f", path.empty() ? 'M' : 'L', axes.X(point.x),
                          axes.Y(point.y));
  }
  const bool is_dashed = series.is_secondary || series.colour >= kColours;
  return absl::StrFormat("<path class=\"line %s%s\" d=\"%s\"><title>%s</title></path>\n",
                         ColourClass(series), is_dashed ? " dashed" : "", path,
                         MarkupText(series.name));
}

std::string Mark(const ChartSeries& series, const Axes& axes) {
  const ChartPoint& point = series.points.front();
  const double x = axes.X(point.x), y = axes.Y(point.y);
  std::string svg = absl::StrFormat(
      "<circle class=\"mark %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>%s: %.6g, "
      "%.6g</title></circle>\n",
      ColourClass(series), x, y, MarkupText(series.name), point.x, point.y);
  if (point.label.empty()) return svg;
  const bool is_left = x > kWidth * 0.7;  // the label goes to the side with more room
  return svg + Text(x + (is_left ? -8 : 8), y + 4, is_left ? "end" : "start", "label", point.label);
}

}  // namespace

std::vector<double> RoundTicks(double least, double most, int wanted) {
  const double range = std::max(most - least, 1e-9 * std::max(std::abs(most), 1.0));
  const double rough = range / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  // The step is the least of 1, 2, 5 and 10 times a power of ten that is not below the rough one.
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  double index = std::floor(least / step + 1e-9);
  std::vector<double> ticks = {index * step};
  while (ticks.back() < most - 1e-9 * step || ticks.size() < 2) ticks.push_back(++index * step);
  return ticks;
}

std::vector<double> LogTicks(double least, double most) {
  std::vector<double> ticks;
  const bool is_short = most / least < 100;
  for (double power = std::pow(10.0, std::floor(std::log10(least)));; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && !is_short) continue;
      const double tick = factor * power;
      if (tick <= least) ticks.clear();  // keeps only the last tick at or below the least value
      ticks.push_back(tick);
      if (tick >= most && ticks.size() > 1) return ticks;
    }
  }
}

std::string Svg(const Chart& chart) {
  const Bounds bounds = BoundsOf(chart);
  if (!std::isfinite(bounds.x0) || !std::isfinite(bounds.y0)) return "";
  Axes axes;
  axes.is_log_x = chart.is_log_x;
  axes.x_ticks = chart.is_log_x ? LogTicks(bounds.x0, bounds.x1)
                                : RoundTicks(bounds.x0, bounds.x1, kMostTicks);
  axes.y_ticks = RoundTicks(bounds.y0, bounds.y1, kMostTicks - 2);
  std::string svg =
      absl::StrFormat("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">\n%s", kWidth,
                      kHeight, MarkupText(chart.title), Grid(chart, axes));
  for (const ChartSeries& series : chart.series) {
    if (series.points.size() == 1) svg += Mark(series, axes);
    if (series.points.size() > 1) svg += Line(series, axes);
  }
  return svg + "</svg>\n";
}

}  // namespace thinwire
