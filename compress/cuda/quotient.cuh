// Division of many numbers by one divisor in fewer instructions, with the bits of a true division.
// CUDA's own division leaves its fast path for every zero.
//
// With r the number nearest to 1 / d, q = x r is within two units of x / d, and the remainder x - q
// d is exact in a fused operation. One correction, q + remainder r, is within a unit of the
// quotient. The second one is the quotient, correctly rounded (Markstein, IBM Journal of Research
// and Development, 1990). Divisors of 8 bits, such as bf16 numbers, need one correction. Their
// quotients never lie so near the middle between two numbers that the first one's error, 2^-23 of a
// unit, matters.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

namespace thinwire {

// Divisor with its reciprocal.
class Divisor {
 public:
  __device__ explicit Divisor(float d)
      : d_(d), inverse_(d >= kLeast && d <= kMost ? 1.0f / d : 0) {}

  __device__ float value() const { return d_; }

  // Returns x / d. kCorrections is 1 for a d that is a bf16 number, otherwise 2.
  template <int kCorrections>
  __device__ float Divide(float x) const {
    const float q = x * inverse_;
    // If q is very small or large, a remainder may have bits below the least float, so a true
    // division follows. q is 0 if d is so itself.
    if (!(fabsf(q) >= kLeast && fabsf(q) <= kMost)) return x == 0 && inverse_ > 0 ? x : x / d_;
    float quotient = q;
#pragma unroll
    for (int i = 0; i < kCorrections; ++i) {
      quotient = fmaf(fmaf(-d_, quotient, x), inverse_, quotient);
    }
    return quotient;
  }

 private:
  static constexpr float kLeast = 0x1p-50f, kMost = 0x1p60f;
  float d_, inverse_;  // 0: only division will do
};

// Divisor for quotients of ordinary size. It has no branches: a divisor that is very small or large
// is scaled, and numbers with it. What is lost by that is out of bounds.
class OrdinaryDivisor {
 public:
  __device__ explicit OrdinaryDivisor(float d)
      : scale_(d == 0         ? 0
               : d < 0x1p-50f ? 0x1p100f
               : d > 0x1p60f  ? 0x1p-100f
                              : 1),
        d_(d * scale_),
        inverse_(d == 0 ? 0 : 1.0f / d_) {}

  // Returns x / d if its magnitude lies between 2^-50 and 2^60. Otherwise the result lies beyond
  // the same bound, or is NaN. By d = 0 it is 0. kCorrections is as above.
  template <int kCorrections>
  __device__ float Divide(float x) const {
    const float scaled = x * scale_;
    float quotient = scaled * inverse_;
#pragma unroll
    for (int i = 0; i < kCorrections; ++i) {
      quotient = fmaf(fmaf(-d_, quotient, scaled), inverse_, quotient);
    }
    return quotient;
  }

 private:
  float scale_, d_, inverse_;
};

}  // namespace thinwire
