#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compress/codecs/rates.h"
#include "compress/spec.h"

namespace thinwire {
namespace {

const double kFinest = std::log2(kLeastStep), kCoarsest = std::log2(kMostStep);

constexpr int kMostGuesses = 8;
constexpr double kFarthest = 3;            // largest distance between consecutive guesses
constexpr double kNeighbours = 1.0 / 512;  // steps closer than this count as the same

// Steps per octave that are all tried, if necessary, for a message small enough.
constexpr int kTriedOfOctave = 4;

// Assumed roughness of the size between two tries: the share by which a message may exceed both
// ends of an interval, or fall below both. It is kRoughness times the width in doublings of the
// step, within these bounds.
constexpr double kLeastRoughness = 0.05, kRoughness = 0.4, kMostRoughness = 0.5;

// Tries of a message that is not large: as many as code kMostElements elements in all.
constexpr int64_t kMostElements = 1 << 19;
constexpr int kManyTries = 512;

// Returns the most tries for a message.
int MostTries(int64_t elements) {
  if (elements >= kLargeElements) return kFewTries;
  return static_cast<int>(std::min<int64_t>(kMostElements / elements, kManyTries));
}

// Returns the entropy, in bits, of an event of probability p.
double BinaryEntropy(double p) {
  return p <= 0 || p >= 1 ? 0 : -p * std::log2(p) - (1 - p) * std::log2(1 - p);
}

// Returns the entropy, in bits, of a Laplacian source of variance 1 in whole steps (Sullivan 1996):
// zero, or a sign and a geometric magnitude.
double LaplacianBits(double step) {
  const double decay = std::exp(-std::sqrt(2.0) * step);
  const double not_zero = std::sqrt(decay);
  return BinaryEntropy(not_zero) + not_zero * (1 + BinaryEntropy(decay) / (1 - decay));
}

// Returns (the logarithm of) the step with which this source has `bits` bits, or the nearest
// possible.
double StepOfLaplacian(double bits) {
  constexpr int kHalvings = 40;
  double finer = kFinest, coarser = kCoarsest;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (finer + coarser) / 2;
    (LaplacianBits(std::exp2(middle)) > bits ? finer : coarser) = middle;
  }
  return coarser;
}

}  // namespace

StepSearch::StepSearch(double rate, int64_t elements)
    : elements_(static_cast<double>(elements)),
      wanted_(rate * elements_ / 8),
      most_tries_(MostTries(elements)),
      step_(StepOfLaplacian(rate)),
      best_distance_(std::numeric_limits<double>::infinity()),
      before_{NAN, NAN},
      finer_(2 * kFinest),
      coarser_(2 * kCoarsest) {}

bool StepSearch::tries_all() const {
  return most_tries_ > 2 * kTriedOfOctave * (kCoarsest - kFinest);
}

double StepSearch::step() const { return std::exp2(step_); }
double StepSearch::best() const { return std::exp2(best_); }

bool StepSearch::Next(size_t bytes) {
  const Point met = {step_, static_cast<double>(bytes)};
  Add(met);
  ++tries_;
  if (is_met() || tries_ == most_tries_) return false;
  return (tries_ < kMostGuesses && GuessNext(met)) || DivideNext();
}

void StepSearch::Add(const Point& point) {
  const auto at = std::lower_bound(points_.begin(), points_.end(), point,
                                   [](const Point& a, const Point& b) { return a.step < b.step; });
  points_.insert(at, point);
  const double distance = std::fabs(point.bytes - wanted_);
  if (distance > best_distance_ || (distance == best_distance_ && point.step > best_)) return;
  best_ = point.step;
  best_distance_ = distance;
}

// Guesses the next step from the last two tries. Returns false if the guess is next to an earlier
// step.
bool StepSearch::GuessNext(const Point& met) {
  (met.bytes > wanted_ ? finer_ : coarser_) = met.step;
  step_ = std::clamp(Guess(met), kFinest, kCoarsest);
  before_ = met;
  return std::all_of(points_.begin(), points_.end(), [this](const Point& point) {
    return std::fabs(point.step - step_) >= kNeighbours;
  });
}

double StepSearch::Guess(const Point& met) const {
  const double missing = std::log2(wanted_ / met.bytes);
  const double slope = std::log2(met.bytes / before_.bytes) / (met.step - before_.step);
  double guess = met.step + missing / slope;
  // First guess: the message is assumed to keep its ratio to the size of a Laplacian source.
  if (std::isnan(slope)) {
    guess = StepOfLaplacian(LaplacianBits(std::exp2(met.step)) * wanted_ / met.bytes);
  } else if (!(slope < 0)) {
    guess = met.step + (met.bytes > wanted_ ? 1 : -1);
  }
  guess = std::clamp(guess, met.step - kFarthest, met.step + kFarthest);
  const bool is_inside = guess > finer_ && guess < coarser_;
  return is_inside ? guess : (finer_ + coarser_) / 2;
}

// Tries both ends of the range, unless wanted steps lie between those of a message too large to try
// them all; then the middle of an interval that may contain a nearer step.
// Intervals whose ends take too much and too little come first, narrowest first, then the others,
// widest first. Returns false if no interval can beat the best try.
bool StepSearch::DivideNext() {
  const bool has_bracket = points_.front().bytes > wanted_ && points_.back().bytes <= wanted_;
  if (!has_bracket || tries_all()) {
    if (points_.front().step > kFinest) return step_ = kFinest, true;
    if (points_.back().step < kCoarsest) return step_ = kCoarsest, true;
  }
  if (points_.front().bytes == points_.back().bytes) return false;  // nothing but zeros
  using Rank = std::pair<bool, double>;
  constexpr Rank kNone = {true, 0};
  Rank first = kNone;
  for (size_t i = 0; i + 1 < points_.size(); ++i) {
    const Point &finer = points_[i], &coarser = points_[i + 1];
    const double width = coarser.step - finer.step;
    if (width < 2 * kNeighbours) continue;
    if (!tries_all() && finer.bytes == points_.back().bytes) break;  // nothing but zeros behind it
    const bool has_both = (finer.bytes > wanted_) != (coarser.bytes > wanted_);
    const double middle = (finer.step + coarser.step) / 2;
    double step = middle;
    if (!has_both && tries_all()) {
      step = std::round(middle * kTriedOfOctave) / kTriedOfOctave;
      if (step <= finer.step || step >= coarser.step) continue;
    } else if (!has_both && LeastDistance(finer, coarser) >= best_distance_) {
      continue;
    }
    const Rank rank = {!has_both, has_both ? width : -width};
    if (rank >= first) continue;
    first = rank;
    step_ = step;
  }
  return first != kNone;
}

// Returns how near to the wanted size a message may come with a step between these.
double StepSearch::LeastDistance(const Point& finer, const Point& coarser) const {
  const double roughness =
      std::clamp(kRoughness * (coarser.step - finer.step), kLeastRoughness, kMostRoughness);
  const double most = std::max(finer.bytes, coarser.bytes) * (1 + roughness);
  const double least = std::min(finer.bytes, coarser.bytes) * (1 - roughness);
  return std::max({0.0, wanted_ - most, least - wanted_});
}

}  // namespace thinwire
