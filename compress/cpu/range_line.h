// Arithmetic of one scope of uniform: from measured extremes to the numbers that travel, and from
// these to the grid. Plain functions, for every backend.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "compress/half.h"
#include "compress/spec.h"

namespace thinwire {

// Extremes of a scope's values, of which there is at least one.
struct MinMax {
  float min, max;
};

// Map from values of one scope to its grid. `lift` is a power of two that keeps `inverse` finite.
struct EncodeLine {
  float offset = 0, lift = 1, inverse = 0;
};
// Map from the grid back to values.
struct DecodeLine {
  float offset = 0, range = 0;
};

HOST_DEVICE inline bool IsFinite(float x) { return (BitsOf(x) & kMagnitudeMask) < kInfinityBits; }

// Returns the largest magnitude. Adding +0 turns -0 into 0, here and below: equal values give equal
// payloads.
HOST_DEVICE inline float LargestOf(const MinMax& m) {
  return (m.max > -m.min ? m.max : -m.min) + 0.0f;
}

// Returns [min, max] moved so that a level is zero: the minimum becomes minus a whole number of
// steps.
HOST_DEVICE inline DecodeLine WithZeroOnGrid(const MinMax& m, int32_t divisor) {
  const float low = m.min < 0 ? m.min : 0.0f;
  const float range = (m.max > 0 ? m.max : 0.0f) - low;
  const double steps = -static_cast<double>(low) / range * divisor;
  const float code = static_cast<float>(std::nearbyint(steps));
  const float reciprocal = 1.0f / static_cast<float>(divisor);
  return {0.0f - (code * reciprocal) * range, range};
}

// Returns the minimum and the range that travel under min_max.
HOST_DEVICE inline DecodeLine MinMaxLine(const MinMax& m, Zero zero, int32_t divisor) {
  const DecodeLine line{m.min + 0.0f, (m.max - m.min) + 0.0f};
  return zero == Zero::kOnGrid && line.range > 0 ? WithZeroOnGrid(m, divisor) : line;
}

// Returns the scale that travels under fixed_point with a pre-scale exponent; FixedPointRange
// inverts it, for a finite `half` without sign.
HOST_DEVICE inline uint16_t FixedPointScale(const MinMax& m, int exponent) {
  constexpr float kMost = 0x1.FFCp127f;  // what lies above would round up to 2^128
  const float largest = LargestOf(m);
  return ToHalf((largest > kMost ? kMost : largest) * PowerOfTwo(exponent));
}
HOST_DEVICE inline float FixedPointRange(uint16_t half, int exponent) {
  return FromHalf(half) * PowerOfTwo(-exponent);
}

// Returns whether all that a scope decodes to is finite.
HOST_DEVICE inline bool IsUsable(const DecodeLine& line) {
  return line.range >= 0 && IsFinite(line.range) && IsFinite(line.offset + line.range);
}

// Returns the map from values of a range to the grid.
HOST_DEVICE inline EncodeLine EncodeLineOf(const DecodeLine& range, int32_t divisor) {
  if (range.range == 0) return {range.offset, 1, 0};
  const float lift = range.range < 0x1p-60f ? 0x1p64f : 1.0f;
  return {range.offset, lift, static_cast<float>(divisor) / (range.range * lift)};
}

}  // namespace thinwire
