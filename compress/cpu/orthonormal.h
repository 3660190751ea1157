// Orthonormal basis of some columns, with the same bits on every machine.
#pragma once

#include <cstddef>

namespace thinwire {

// Makes columns orthonormal by modified Gram-Schmidt, in their order. `p` holds `count` columns of
// `n` finite elements, one after the other. Each becomes orthogonal to those before it and of
// length 1. Sums are fp64, in a fixed order. A column becomes zeros if not even 2^-20 of its length
// is left.
void Orthonormalise(float* p, size_t n, size_t count);

}  // namespace thinwire
