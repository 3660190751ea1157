// Bounds of histograms: twelve per decade, so that a quantile is known to within a quarter of its
// value.
#pragma once

#include <array>
#include <cstddef>

namespace thinwire {

// Returns 1, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.7, 6.8, 8.25 in each decade, from 10^first
// to 10^(first + decades), both included. Each is the double nearest to its decimal, so Prometheus'
// text, with 16 digits, shows that decimal.
template <int first, int decades>
constexpr std::array<double, 12 * decades + 1> DecimalBounds() {
  constexpr double kHundredths[] = {100, 120, 150, 180, 220, 270, 330, 390, 470, 570, 680, 825};
  std::array<double, 12 * decades + 1> bounds{};
  for (size_t i = 0; i < bounds.size(); ++i) {
    double power = 1;  // exact, like its factor or divisor
    const int exponent = first - 2 + static_cast<int>(i / 12);
    for (int e = 0; e < (exponent < 0 ? -exponent : exponent); ++e) power *= 10;
    bounds[i] = exponent < 0 ? kHundredths[i % 12] / power : kHundredths[i % 12] * power;
  }
  return bounds;
}

}  // namespace thinwire
