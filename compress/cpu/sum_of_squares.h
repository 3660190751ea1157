// Sum of a scope's squares in fp64, from which root mean squares follow.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace thinwire {

// Returns the sum over elements [begin, begin + n) of x, fp32 or bf16, in the order
// below. It is finite iff all of them are.
double SumOfSquares(const TensorView& x, int64_t begin, int64_t n, int threads);

// Order in which a sum of squares is taken, the same on CPU and GPU. It is part of the payload's
// definition (docs/compression.md): sixteen lanes of each stretch of 4096 elements, which suits
// both vectors and thread blocks.
constexpr int64_t kSquareStretch = 4096;
constexpr int64_t kSquareLanes = 16;

}  // namespace thinwire
