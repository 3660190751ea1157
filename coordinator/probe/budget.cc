#include "coordinator/probe/budget.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "compress/spec_text.h"
#include "config/codec_config.h"
#include "config/specs.h"
#include "config/yaml_message.h"
#include "models/frozen.h"

namespace thinwire {
namespace {

constexpr int kDoublings = 3;  // rates from 2^-3 to 2^3 times the budget

using Point = RateCurve::Point;

// Returns the falling part of the lower convex hull of the logarithms. Between its points the
// logarithm is linear, so the square itself is convex too.
std::vector<Point> Hull(const std::vector<Point>& points) {
  constexpr double kLeast = 1e-30;  // in place of 0, which has no logarithm
  const auto slope = [](const Point& a, const Point& b) {
    return std::log(b.squared_error / a.squared_error) / (b.bits - a.bits);
  };
  std::vector<Point> hull;
  for (Point point : points) {
    point.squared_error = std::max(point.squared_error, kLeast);
    if (!hull.empty() && hull.back().bits == point.bits) {
      if (hull.back().squared_error <= point.squared_error) continue;
      hull.pop_back();
    }
    while (hull.size() > 1 &&
           slope(hull[hull.size() - 2], hull.back()) >= slope(hull.back(), point)) {
      hull.pop_back();
    }
    hull.push_back(point);
  }
  while (hull.size() > 1 && slope(hull[hull.size() - 2], hull.back()) >= 0) hull.pop_back();
  return hull;
}

// Returns the rate from which on the square falls by no more than `price` per bit and element.
double RateAt(const std::vector<Point>& hull, double price) {
  for (size_t i = 0; i + 1 < hull.size(); ++i) {
    const Point &a = hull[i], &b = hull[i + 1];
    const double decay = std::log(a.squared_error / b.squared_error) / (b.bits - a.bits);
    if (price >= decay * a.squared_error) return a.bits;
    if (price > decay * b.squared_error) {
      return a.bits + std::log(decay * a.squared_error / price) / decay;
    }
  }
  return hull.back().bits;
}

bool TakesRate(const CodecSpec& codec) { return CodecRowOf(codec.kind).level == LevelField::kRate; }

CodecSpec AtRate(CodecSpec codec, double bits) {
  codec.rate = bits;
  return codec;
}

// Tensors that cross a cut in one direction.
struct Crossing {
  std::string cut;
  bool gradient = false;
  double elements = 0;  // of a sample
};

// Returns those of all cuts, activations first. Gradients need not cross each.
absl::StatusOr<std::vector<Crossing>> CrossingsOf(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  std::vector<Crossing> all;
  for (const Cut& cut : partition.cuts) {
    const auto elements = static_cast<double>(partition.model.blocks[cut.block].out.elements());
    all.push_back({cut.name, false, elements});
    if (HasGradients(partition.model, cut)) all.push_back({cut.name, true, elements});
  }
  if (all.empty()) return absl::InvalidArgumentError("--budget: the model has no cut");
  return all;
}

// Returns the curve of one direction of a cut, from the rows of the report.
RateCurve CurveOf(const ProbeReport& report, const std::string& cut, bool gradient) {
  RateCurve curve;
  for (const ProbeRow& row : report.rows()) {
    if (row.cut() != cut || row.boundaries_size() != 1 ||
        row.boundaries(0).gradient() != gradient) {
      continue;
    }
    const double error = row.all().relative_error().mean();
    curve.points.push_back({row.boundaries(0).bits_per_element(), error * error});
  }
  std::sort(curve.points.begin(), curve.points.end(),
            [](const Point& a, const Point& b) { return a.bits < b.bits; });
  return curve;
}

}  // namespace

absl::StatusOr<Budget> ParseBudget(double bits, const std::string& codecs) {
  ASSIGN_OR_RETURN(const auto configurations, ParseProbeCodec(codecs));
  const ProbeConfiguration& both = configurations.back();
  Budget budget{bits, *both.activations, *both.gradients};
  for (CodecSpec* codec : {&budget.activations, &budget.gradients}) {
    if (!TakesRate(*codec)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--budget with ", codec->ToString(), ", want ecsq, which takes a rate"));
    }
    codec->rate = bits;
    RETURN_IF_ERROR(CheckSpec(*codec));
  }
  return budget;
}

absl::StatusOr<std::vector<ProbeConfiguration>> BudgetConfigurations(const Budget& budget,
                                                                     const Experiment& experiment) {
  ASSIGN_OR_RETURN(const std::vector<Crossing> crossings, CrossingsOf(experiment));
  std::vector<ProbeConfiguration> all;
  for (const Crossing& crossing : crossings) {
    for (int doublings = -kDoublings; doublings <= kDoublings; ++doublings) {
      const double bits = std::ldexp(budget.bits, doublings);
      if (bits < kLeastRate || bits > kMostRate) continue;
      ProbeConfiguration& one = all.emplace_back();
      one.cut = crossing.cut;
      if (crossing.gradient) {
        one.gradients = AtRate(budget.gradients, bits);
      } else {
        one.activations = AtRate(budget.activations, bits);
      }
    }
  }
  return all;
}

double SquaredErrorAt(const RateCurve& curve, double bits) {
  const std::vector<Point> hull = Hull(curve.points);
  for (size_t i = 0; i + 1 < hull.size(); ++i) {
    const Point &a = hull[i], &b = hull[i + 1];
    if (bits > b.bits) continue;
    const double part = std::max(0.0, (bits - a.bits) / (b.bits - a.bits));
    return a.squared_error * std::pow(b.squared_error / a.squared_error, part);
  }
  return hull.back().squared_error;
}

std::vector<double> ShareBits(const std::vector<RateCurve>& curves, double bits) {
  constexpr int kHalvings = 200;
  std::vector<std::vector<Point>> hulls;
  double elements = 0;
  for (const RateCurve& curve : curves) {
    hulls.push_back(Hull(curve.points));
    elements += curve.elements;
  }
  // `price` is the logarithm of the price of one more bit for every element of all directions. A
  // direction with more elements pays more for one bit of each of them.
  const auto rates = [&](double price) {
    std::vector<double> rates;
    for (size_t i = 0; i < curves.size(); ++i) {
      rates.push_back(RateAt(hulls[i], std::exp(price) * curves[i].elements / elements));
    }
    return rates;
  };
  const auto mean = [&](const std::vector<double>& rates) {
    double sum = 0;
    for (size_t i = 0; i < curves.size(); ++i) sum += curves[i].elements * rates[i];
    return sum / elements;
  };
  // Bisects the logarithm of the price: the rates fall as it rises.
  double low = -200, high = 200;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (mean(rates(middle)) > bits ? low : high) = middle;
  }
  return rates(high);
}

absl::Status AddShares(const Budget& budget, const Experiment& experiment, ProbeReport* report) {
  ASSIGN_OR_RETURN(const std::vector<Crossing> crossings, CrossingsOf(experiment));
  std::vector<RateCurve> curves;
  for (const Crossing& crossing : crossings) {
    curves.push_back(CurveOf(*report, crossing.cut, crossing.gradient));
    curves.back().elements = crossing.elements;
  }
  const std::vector<double> rates = ShareBits(curves, budget.bits);
  ProbeBudget* const shared = report->mutable_budget();
  shared->set_bits_per_element(budget.bits);
  double squares = 0, equal_squares = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    const double square = SquaredErrorAt(curves[i], rates[i]);
    ProbeShare* const share = shared->add_shares();
    share->set_cut(crossings[i].cut);
    share->set_gradient(crossings[i].gradient);
    // Four digits are finer than a message's rate can be met.
    share->set_rate(std::round(rates[i] * 1e4) / 1e4);
    const CodecSpec& codec = share->gradient() ? budget.gradients : budget.activations;
    share->set_codec(AtRate(codec, share->rate()).ToString());
    share->set_relative_error(std::sqrt(square));
    squares += square;
    equal_squares += SquaredErrorAt(curves[i], budget.bits);
  }
  shared->set_relative_error(std::sqrt(squares));
  shared->set_equal_relative_error(std::sqrt(equal_squares));
  return absl::OkStatus();
}

std::string SharesYaml(const ProbeBudget& budget) {
  Experiment fragment;
  auto& boundaries = *fragment.mutable_compression()->mutable_boundaries();
  for (const ProbeShare& share : budget.shares()) {
    BoundaryConfig& boundary = boundaries[share.cut()];
    // The text is ecsq's own, so parsing it cannot fail.
    (share.gradient() ? *boundary.mutable_gradients() : *boundary.mutable_activations()) =
        *ConfigOf(*ParseCodec(share.codec()));
  }
  return WriteYaml(fragment);
}

}  // namespace thinwire
