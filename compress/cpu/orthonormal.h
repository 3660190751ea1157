// An orthonormal basis of some columns, the same bits on every machine.
#pragma once

#include <cstddef>

namespace thinwire {

// Modified Gram-Schmidt in the order of the columns: p holds `count` columns of `n` elements, one
// behind the other. Each becomes orthogonal to those before it and of length 1. Sums are fp64, in a
// fixed order. A column of which not even 2^-20 is left vanishes: it becomes zeros. Finite values.
void Orthonormalise(float* p, size_t n, size_t count);

}  // namespace thinwire
