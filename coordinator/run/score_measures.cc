#include "coordinator/run/score_measures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

double Mean(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return sum / static_cast<double>(values.size());
}

// Returns the ranks of values, from 1.
std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return values[i] < values[j]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0, end = 0; first < order.size(); first = end) {
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    const double rank = static_cast<double>(first + 1 + end) / 2;
    for (size_t i = first; i < end; ++i) ranks[order[i]] = rank;
  }
  return ranks;
}

}  // namespace

double Pearson(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = Mean(a), mean_b = Mean(b);
  double products = 0, squares_a = 0, squares_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    products += (a[i] - mean_a) * (b[i] - mean_b);
    squares_a += (a[i] - mean_a) * (a[i] - mean_a);
    squares_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  const double scale = std::sqrt(squares_a) * std::sqrt(squares_b);
  return scale > 0 ? products / scale : 0;
}

double Spearman(const std::vector<double>& a, const std::vector<double>& b) {
  return Pearson(Ranks(a), Ranks(b));
}

absl::StatusOr<ScoreMeasures> MeasureScores(const EvaluationReport& report) {
  const std::vector<double> predictions(report.predictions().begin(), report.predictions().end());
  const std::vector<double> scores(report.scores().begin(), report.scores().end());
  if (predictions.size() != report.samples() || scores.size() != report.samples()) {
    return absl::InternalError(absl::StrCat("the last stage reported ", predictions.size(),
                                            " predictions and ", scores.size(), " scores, want ",
                                            report.samples(), " of each"));
  }
  ScoreMeasures measures;
  measures.set_pearson(Pearson(predictions, scores));
  measures.set_spearman(Spearman(predictions, scores));
  return measures;
}

}  // namespace thinwire
