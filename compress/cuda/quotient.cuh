// Quotients by one divisor, the same bits as a division gives, in fewer instructions: CUDA's
// division leaves the fast path for every zero.
//
// With r the nearest number to 1 / d, q = x r is within two units of x / d, and the rest x - q d is
// exact in a fused operation. One correction q + rest r is within a unit of the quotient, and a
// second one is the quotient, correctly rounded (Markstein, IBM Journal of Research and
// Development, 1990). Divisors of 8 bits, as those of bf16, want one: no quotient by such lies so
// near the middle between two numbers that the error of the first, 2^-23 of a unit, matters.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

namespace thinwire {

class Divisor {
 public:
  __device__ explicit Divisor(float d)
      : d_(d), inverse_(d >= kLeast && d <= kMost ? 1.0f / d : 0) {}

  __device__ float value() const { return d_; }

  // x / d. kCorrections: 1 for a d that is a bf16, else 2.
  template <int kCorrections>
  __device__ float Divide(float x) const {
    const float q = x * inverse_;
    // Where it is small or large, products may not be exact; it is 0 of a d that is so, too.
    if (!(fabsf(q) >= kLeast && fabsf(q) <= kMost)) return x == 0 && inverse_ > 0 ? x : x / d_;
    float quotient = q;
#pragma unroll
    for (int i = 0; i < kCorrections; ++i) {
      quotient = fmaf(fmaf(-d_, quotient, x), inverse_, quotient);
    }
    return quotient;
  }

 private:
  static constexpr float kLeast = 0x1p-60f, kMost = 0x1p60f;
  const float d_, inverse_;  // 0: only division will do
};

}  // namespace thinwire
