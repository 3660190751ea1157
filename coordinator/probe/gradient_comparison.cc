#include "coordinator/probe/gradient_comparison.h"

#include <cassert>
#include <cmath>
#include <limits>

namespace thinwire {

void GradientComparison::Add(absl::Span<const float> g, absl::Span<const float> g0) {
  assert(g.size() == g0.size());
  for (size_t i = 0; i < g.size(); ++i) {
    const double a = g[i], b = g0[i];
    dot_ += a * b;
    g_squares_ += a * a;
    g0_squares_ += b * b;
    difference_squares_ += (a - b) * (a - b);
  }
}

void GradientComparison::Add(const GradientComparison& other) {
  dot_ += other.dot_;
  g_squares_ += other.g_squares_;
  g0_squares_ += other.g0_squares_;
  difference_squares_ += other.difference_squares_;
}

Closeness GradientComparison::Result() const {
  if (g_squares_ == 0 && g0_squares_ == 0) return {};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (g0_squares_ == 0) return {0, kInfinity, kInfinity};
  // One square root of the product: as sqrt(x x) is x, equal vectors have cosine 1 to the last bit.
  const double norms = std::sqrt(g_squares_ * g0_squares_);
  return {norms == 0 ? 0 : dot_ / norms, std::sqrt(difference_squares_ / g0_squares_),
          std::sqrt(g_squares_ / g0_squares_)};
}

}  // namespace thinwire
