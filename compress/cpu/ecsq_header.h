// Arithmetic of ecsq that is done once per scope, magnitude or escape, the same on CPU and GPU.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "compress/half.h"

namespace thinwire {

constexpr uint8_t kEscape = 255;  // byte of a code that has none and follows behind all bytes

// Returns the zigzag of a code: 0, -1, 1, -2, 2, ... become 0, 1, 2, 3, 4, ...
HOST_DEVICE inline uint32_t ZigZag(int32_t code) {
  return (static_cast<uint32_t>(code) << 1) ^ static_cast<uint32_t>(code >> 31);
}

// Returns the step as it travels, in bf16: 0 if all values are zero, otherwise a normal number.
HOST_DEVICE inline uint16_t StepBits(double sum_of_squares, int64_t elements, double step) {
  constexpr uint16_t kLeastNormal = 0x0080;
  if (sum_of_squares == 0) return 0;
  const double exact = step * std::sqrt(sum_of_squares / static_cast<double>(elements));
  const uint16_t bits = ToBFloat(static_cast<float>(exact < kMaxBFloat ? exact : kMaxBFloat));
  return bits < kLeastNormal ? kLeastNormal : bits;
}
HOST_DEVICE inline bool IsStep(uint16_t bits) {
  return bits == 0 || (bits >= 0x0080 && bits < 0x7F80);
}

// Returns noise in [-1/2, 1/2) from a random number.
HOST_DEVICE inline float Dither(uint32_t random) {
  return static_cast<float>(random >> 8) * 0x1p-24f - 0.5f;
}

// Returns how far the values of a magnitude lie above it on average, in units of 2^-7 steps.
// `fractions` is the sum of how far each lies above it, in units of 2^-16 steps. The mean is
// rounded to nearest, halves away from zero, and is above -1 step, so that only code 0 decodes to
// zero.
constexpr float kFractionUnit = 0x1p16f, kMeanUnit = 0x1p-7f;
HOST_DEVICE inline int8_t MeanOf(int64_t fractions, int64_t count) {
  if (count == 0) return 0;
  const int64_t divisor = count << 9;
  const int64_t rounded = fractions + (fractions < 0 ? -divisor : divisor) / 2;
  const int64_t mean = rounded / divisor;
  return static_cast<int8_t>(mean > 127 ? 127 : mean < -127 ? -127 : mean);
}

// Returns the value of `steps` steps, not always a whole number: finite in fp32 and bf16, whatever
// a payload says.
HOST_DEVICE inline float ValueOfSteps(float steps, float step) {
  const float x = steps * step;
  return x > kMaxBFloat ? kMaxBFloat : x < -kMaxBFloat ? -kMaxBFloat : x;
}

}  // namespace thinwire
