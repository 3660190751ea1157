// One budget of bits for all directions of all cuts, shared so that the parameter gradient suffers
// least.
//
// Each direction of each cut is probed alone at several rates, which makes its curve E^2(r): the
// square of the gradient's relative error at r bits per element. Errors of different directions are
// taken to be independent, so that their squares add up. The least sum has the same slope
// everywhere, in E^2 for each bit sent (Shoham and Gersho, 1988; of Gaussian sources that is
// reverse water-filling: Cover and Thomas, Elements of Information Theory, 10.3.3).
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

// What shares a budget: `bits` for each element that crosses in either direction, all cuts
// together.
struct Budget {
  double bits = 0;
  CodecSpec activations, gradients;  // with a rate, whatever it is
};

// `codecs`: "ACTIVATIONS | GRADIENTS", or one for both. InvalidArgument unless both take a rate and
// the budget is one.
absl::StatusOr<Budget> ParseBudget(double bits, const std::string& codecs);

// A row for each direction of each of the resolved experiment's cuts and each of some rates, from
// an eighth of the budget to eight times as much, as far as a rate goes.
absl::StatusOr<std::vector<ProbeConfiguration>> BudgetConfigurations(const Budget& budget,
                                                                     const Experiment& experiment);

// What a direction of a cut loses. `points`: by ascending rate, at least one.
struct RateCurve {
  struct Point {
    double bits = 0;           // per element
    double squared_error = 0;  // of the parameter gradient, relative
  };
  double elements = 0;  // that cross, in any unit that all curves share
  std::vector<Point> points;
};

// The rate of each, within its points, with which the errors' squares have the least sum and the
// mean over all elements is `bits`, or as near as the points allow. Between points the logarithm of
// the square is taken to be linear, and points above their neighbours' line are passed over.
std::vector<double> ShareBits(const std::vector<RateCurve>& curves, double bits);

// The square of the error at a rate, as ShareBits takes it.
double SquaredErrorAt(const RateCurve& curve, double bits);

// Adds report->budget from the rows that BudgetConfigurations made.
absl::Status AddShares(const Budget& budget, const Experiment& experiment, ProbeReport* report);

// What an experiment file says with these shares: `compression.boundaries`. Empty without any.
std::string SharesYaml(const ProbeBudget& budget);

}  // namespace thinwire
