// Rates of ecsq: the step that a rate needs, and the rate that a message takes whatever its step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/kernels.h"
#include "compress/spec.h"
#include "tensor/shape.h"

namespace thinwire {

// Search for the quantiser step with which a message takes a wanted rate, by trial encodings.

// Share of the wanted bytes within which a message's size counts as met, and that of a large
// message from its try number kNearTries on. If no step meets it, the nearest is taken.
constexpr double kRateTolerance = 0.01, kWideRateTolerance = 0.04;
constexpr int kNearTries = 8;

// A message of so many elements gets at most so many tries; a smaller one more.
constexpr int64_t kLargeElements = 1 << 13;
constexpr int kFewTries = 16;

// Searches steps from kLeastStep to kMostStep; two or three tries are the rule. If these miss the
// tolerance, the search divides the intervals between the steps tried, as long as a nearer step may
// lie there: a finer step usually takes more bytes, but not always. Steps closer than a factor of
// 2^(1/512) count as the same. Pure; one thread.
class StepSearch {
 public:
  // Starts the search for a step that takes `rate` bits per element. `elements` > 0.
  StepSearch(double rate, int64_t elements);

  // Returns the step to try next.
  double step() const;
  // Records that the message took `bytes` bytes with step(). Returns false if the search has ended.
  bool Next(size_t bytes);

  // Returns the step that came nearest to the rate; of equals the finest.
  double best() const;
  bool is_met() const {
    const bool is_late = most_tries_ == kFewTries && tries_ >= kNearTries;
    return best_distance_ <= (is_late ? kWideRateTolerance : kRateTolerance) * wanted_;
  }

 private:
  // One try. All steps below are logarithms to base 2.
  struct Point {
    double step, bytes;
  };

  // Returns whether the message is small enough to try a step in each quarter of an octave.
  bool tries_all() const;
  // Inserts a try into points_ and updates best_.
  void Add(const Point& point);
  // Sets step_ by interpolation (GuessNext, Guess) or by bisection (DivideNext). Each returns false
  // if it knows no useful step.
  bool GuessNext(const Point& met);
  bool DivideNext();
  double Guess(const Point& met) const;
  double LeastDistance(const Point& finer, const Point& coarser) const;

  const double elements_, wanted_;  // wanted_ in bytes
  const int most_tries_;
  int tries_ = 0;
  double step_;
  std::vector<Point> points_;  // all tries, by ascending step
  double best_ = 0, best_distance_;
  // The try before the last guess, and the steps between which the wanted one lies.
  Point before_;
  double finer_, coarser_;
};

// Rate that a message of ecsq takes however coarse its step is.

// Returns bits per element of a message of normally distributed values (a fixed draw) with the
// coarsest step, whose codes are nearly all zero: the cost of steps, tables and rANS states. For
// rotated messages it measures the rotated tensor's payload, without axes. With a support, of which
// nothing is known, it assumes that half of the elements are supported. `spec` is ecsq with a rate.
// `kernels` are the host's.
absl::StatusOr<double> MeasureLeastRate(const CodecSpec& spec, const Shape& shape,
                                        CodecKernels* kernels);

}  // namespace thinwire
