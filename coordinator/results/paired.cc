#include "coordinator/results/paired.h"

#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace thinwire {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Returns P(|T| <= t) (Abramowitz & Stegun 26.7.3 and 26.7.4).
double Within(double t, size_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  const bool is_odd = degrees % 2 == 1;
  double term = is_odd ? cosine : 1, total = is_odd ? 0 : 1;
  if (is_odd && degrees > 1) total = term;
  for (size_t k = is_odd ? 3 : 2; k < degrees; k += 2) {
    term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
    total += term;
  }
  return is_odd ? 2 / kPi * (angle + std::sin(angle) * total) : std::sin(angle) * total;
}

}  // namespace

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double DeviationOf(const std::vector<double>& values) {
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  const double mean = MeanOf(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// Bisects, as the probability rises with t.
double StudentT95(size_t degrees) {
  double low = 0, high = 1;
  while (Within(high, degrees) < 0.95) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (Within(middle, degrees) < 0.95 ? low : high) = middle;
  }
  return high;
}

std::vector<double> PairedDifferences(const BySeed& left, const BySeed& right, double scale) {
  std::vector<double> differences;
  for (const auto& [seed, value] : left) {
    for (const auto& [other, its] : right) {
      if (seed == other) differences.push_back((its - value) * scale);
    }
  }
  return differences;
}

absl::StatusOr<Estimate> PairedEstimate(const std::vector<double>& differences) {
  if (differences.empty()) return absl::InvalidArgumentError("no pair, want one at least");
  Estimate estimate = {differences.size(), MeanOf(differences), 0, 0};
  const double root = std::sqrt(static_cast<double>(differences.size()));
  const double half = differences.size() < 2
                          ? std::numeric_limits<double>::quiet_NaN()
                          : StudentT95(differences.size() - 1) * DeviationOf(differences) / root;
  estimate.low = estimate.mean - half;
  estimate.high = estimate.mean + half;
  return estimate;
}

std::string EstimateText(const std::vector<double>& differences, int digits) {
  const auto estimate = PairedEstimate(differences);
  if (!estimate.ok()) return "";
  const std::string mean = absl::StrFormat("%+.*f", digits, estimate->mean);
  if (std::isnan(estimate->low)) return mean;
  return absl::StrCat(
      mean, absl::StrFormat(" [%+.*f, %+.*f]", digits, estimate->low, digits, estimate->high));
}

}  // namespace thinwire
