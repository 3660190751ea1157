// The step with which a message takes its rate: found by what it took with others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace thinwire {

// A message takes its rate within this share, or comes nearest.
constexpr double kRateTolerance = 0.01;

// Looks for it among steps from kLeastStep to kMostStep, with two or three as a rule. Where these
// miss the tolerance it goes on between the steps that it has met, as long as there may be a nearer
// one: a finer step takes more bytes, but not always. Steps that are a 2^(1/512) apart are
// neighbours. Pure; one thread.
class StepSearch {
 public:
  // `rate`: bits for each of `elements`, of which there are some.
  StepSearch(double rate, int64_t elements);

  // The one to try.
  double step() const;
  // Takes in how many bytes the message took with step(). False if that ends the search.
  bool Next(size_t bytes);

  // The one that came nearest, of equals the finest.
  double best() const;
  bool is_met() const { return best_distance_ <= kRateTolerance * wanted_; }

 private:
  // Steps are logarithms to base 2.
  struct Point {
    double step, bytes;
  };

  // Whether the message is small enough for a step of each quarter of an octave.
  bool tries_all() const;
  void Add(const Point& point);
  bool GuessNext(const Point& met);
  bool DivideNext();
  double Guess(const Point& met) const;
  double LeastDistance(const Point& finer, const Point& coarser) const;

  const double elements_, wanted_;  // bytes
  const int most_tries_;
  int tries_ = 0;
  double step_;
  std::vector<Point> points_;  // by their steps
  double best_ = 0, best_distance_;
  // The guess before, and the steps between which the wanted one is.
  Point before_;
  double finer_, coarser_;
};

}  // namespace thinwire
