// Mean and interval of differences between runs that share a seed.
#pragma once

#include <cstddef>
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

// Of one difference per seed: mean ± t(n - 1) · sd / √n. InvalidArgument without any.
absl::StatusOr<Estimate> PairedEstimate(const std::vector<double>& differences);

}  // namespace thinwire
