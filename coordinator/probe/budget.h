// Division of one budget of bits among all directions of all cuts, so that the parameter gradient
// suffers least.
//
// Each direction of each cut is probed alone at several rates, which gives its curve E^2(r): the
// squared relative error of the gradient at r bits per element. Errors of different directions are
// taken as independent, so their squares add up. At the least sum all curves have the same slope,
// in E^2 per bit sent (Shoham and Gersho, 1988). For Gaussian sources that is reverse water-filling
// (Cover and Thomas, Elements of Information Theory, 10.3.3).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "coordinator/probe/configurations.h"
#include "proto/experiment.pb.h"
#include "proto/probe.pb.h"

namespace thinwire {

// A budget to divide: the mean of `bits` per element that crosses, over both directions of all
// cuts.
struct Budget {
  double bits = 0;
  CodecSpec activations, gradients;  // must have a rate; its value is ignored
};

// Parses `codecs`: "ACTIVATIONS | GRADIENTS", or one codec for both. InvalidArgument unless both
// have a rate and `bits` is a possible budget.
absl::StatusOr<Budget> ParseBudget(double bits, const std::string& codecs);

// Returns the rows to probe: one for each direction of each of the resolved experiment's cuts and
// each of some rates. The rates go from an eighth of the budget to eight times as much, within the
// limits of a rate.
absl::StatusOr<std::vector<ProbeConfiguration>> BudgetConfigurations(const Budget& budget,
                                                                     const Experiment& experiment);

// Error of one direction of a cut by rate. `points` ascend by bits; there is at least one.
struct RateCurve {
  struct Point {
    double bits = 0;           // per element
    double squared_error = 0;  // relative error of the parameter gradient, squared
  };
  double elements = 0;  // number that crosses, in any unit that all curves share
  std::vector<Point> points;
};

// Returns the rate of each curve, within its points, so that the sum of squared errors is least.
// The mean over all elements is `bits`, or as near as the points allow. Between points the
// logarithm of the squared error is interpolated linearly; points above the lower convex hull are
// ignored.
std::vector<double> ShareBits(const std::vector<RateCurve>& curves, double bits);

// Returns the squared error at a rate, interpolated as in ShareBits.
double SquaredErrorAt(const RateCurve& curve, double bits);

// Fills in report->budget from the rows that BudgetConfigurations made.
absl::Status AddShares(const Budget& budget, const Experiment& experiment, ProbeReport* report);

// Returns `compression.boundaries` of an experiment file with these shares; empty if there are
// none.
std::string SharesYaml(const ProbeBudget& budget);

}  // namespace thinwire
