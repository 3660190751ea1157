// The pieces of a random rotation: signs, and the Walsh-Hadamard transform. The same bits on every
// SIMD target: each sum and product is rounded to fp32 on its own, in the order given here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// to[i] = from[i], negated iff bit i % 32 of numbers[i / 32] is set. `to` may be `from`.
void FlipSigns(const float* from, size_t n, const uint32_t* numbers, float* to);

// Transforms x[0, size) in place for a power of two up to 2^15: for h = 1, 2, 4, ... size / 2,
// every pair (a, b) = (x[i], x[i + h]) with bit h of i clear becomes (a + b, a - b); at the end
// each element is multiplied by fp32(1 / sqrt(size)). The same for each of `n / size` blocks; n is
// a multiple of size.
void Hadamard(float* x, size_t n, size_t size);

}  // namespace thinwire
