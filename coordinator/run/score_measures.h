// How well predictions follow the scores of samples. Pure functions.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Returns Pearson's correlation coefficient of two lists of one length; 0 if all values of a list
// are the same.
double Pearson(const std::vector<double>& a, const std::vector<double>& b);

// Returns Spearman's coefficient (Spearman, 1904): Pearson's of the ranks. Values that are the same
// all have the mean of their ranks.
double Spearman(const std::vector<double>& a, const std::vector<double>& b);

// Returns both for an evaluation's predictions and scores. Internal if there are not as many of
// each as samples.
absl::StatusOr<ScoreMeasures> MeasureScores(const EvaluationReport& report);

}  // namespace thinwire
