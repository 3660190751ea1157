// Arithmetic of values means: magnitudes as whole units of their group, cells that are split at
// their mean, and the mean that travels. Sums of whole numbers do not depend on their order, so
// every backend finds the same cells. Plain functions, for every backend.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"

namespace thinwire {

// Returns e such that `largest` times 2^e lies in [2^30, 2^31); 0 for 0. Requires `largest` finite
// and not negative. e is from -97 to 179.
HOST_DEVICE inline int UnitExponent(float largest) {
  if (largest == 0) return 0;
  int exponent;
  std::frexp(largest, &exponent);
  return 31 - exponent;
}

// Returns a magnitude in units: its product with 2^e, to nearest even. `scale` is that power.
HOST_DEVICE inline uint32_t UnitsOf(float x, double scale) {
  return static_cast<uint32_t>(std::nearbyint(std::fabs(static_cast<double>(x)) * scale));
}

// Cell of magnitudes: how many there are of fewer than 2^32, and the sum of their units.
struct MeanCell {
  uint64_t sum, count;
};

// Returns whether a magnitude of this cell goes to the upper of the two into which it is split: it
// is above the mean. Both sides are below 2^63.
HOST_DEVICE inline bool IsAboveMean(const MeanCell& cell, uint32_t units) {
  return units * cell.count > cell.sum;
}

// Returns the mean that travels, at most the group's largest magnitude; 0 for an empty cell.
HOST_DEVICE inline float MeanOf(const MeanCell& cell, int exponent) {
  if (cell.count == 0) return 0;
  const double units = static_cast<double>(cell.sum) / static_cast<double>(cell.count);
  return static_cast<float>(units * std::ldexp(1.0, -exponent));
}

}  // namespace thinwire
