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
// Standard deviation with n - 1; NaN of fewer than two values.
double DeviationOf(const std::vector<double>& values);

// t with P(|T| <= t) = 0.95 of Student's t with `degrees` >= 1 degrees of freedom.
double StudentT95(size_t degrees);

struct Estimate {
  size_t n = 0;
  double mean = 0;
  double low = 0, high = 0;  // ends of the 95 % interval; NaN of a single difference
};

// Values by seed, of runs that are compared to others with the same seeds.
using BySeed = std::vector<std::pair<uint64_t, double>>;
// Right minus left, times `scale`, of the seeds that both have.
std::vector<double> PairedDifferences(const BySeed& left, const BySeed& right, double scale);

// Of one difference per seed: mean ± t(n - 1) · sd / √n. InvalidArgument without any.
absl::StatusOr<Estimate> PairedEstimate(const std::vector<double>& differences);

// "-1.25 [-2.00, -0.50]" of the differences with so many digits; without an interval of a single
// one; "" of none.
std::string EstimateText(const std::vector<double>& differences, int digits);

}  // namespace thinwire
