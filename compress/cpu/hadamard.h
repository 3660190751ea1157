// Parts of a random rotation: signs, and the Walsh-Hadamard transform. Results have the same bits
// on every SIMD target: each sum and product is rounded to fp32 on its own, in the order given
// here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Sets to[i] = from[i], negated iff bit i % 32 of numbers[i / 32] is set. `to` may be `from`.
void FlipSigns(const float* from, size_t n, const uint32_t* numbers, float* to);

// Transforms each of the n / size blocks of x in place. `size` is a power of two up to 2^15, and n
// is a multiple of it. For h = 1, 2, 4, ... size / 2, every pair (a, b) = (x[i], x[i + h]) with bit
// h of i clear becomes (a + b, a - b). At the end each element is multiplied by fp32(1 /
// sqrt(size)).
void Hadamard(float* x, size_t n, size_t size);

}  // namespace thinwire
