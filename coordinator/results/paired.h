// Mean and interval of differences between runs that share a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

double MeanOf(const std::vector<double>& values);
// Returns the standard deviation with n - 1; NaN for fewer than two values.
double DeviationOf(const std::vector<double>& values);

// Returns the t with P(|T| <= t) = 0.95 for Student's distribution with `degrees` >= 1 degrees of
// freedom.
double StudentT95(size_t degrees);

// Mean difference and its interval.
struct Estimate {
  size_t n = 0;
  double mean = 0;
  double low = 0, high = 0;  // ends of the 95 % interval; NaN for a single difference
};

// Pairs of seed and value, of runs that are compared to others with the same seeds.
using BySeed = std::vector<std::pair<uint64_t, double>>;
// Returns right minus left, times `scale`, for the seeds that both have.
std::vector<double> PairedDifferences(const BySeed& left, const BySeed& right, double scale);

// Estimates from one difference per seed: mean ± t(n - 1) · sd / √n. InvalidArgument without any.
absl::StatusOr<Estimate> PairedEstimate(const std::vector<double>& differences);

// Returns "-1.25 [-2.00, -0.50]", the estimate with `digits` decimals. A single difference has no
// interval; without any the text is "".
std::string EstimateText(const std::vector<double>& differences, int digits);

}  // namespace thinwire
