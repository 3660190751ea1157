// The sum of a scope's squares in fp64: what root mean squares are taken of.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace thinwire {

// Of elements [begin, begin + n) of x, fp32 or bf16, in the order of square_order.h. Not finite iff
// one of them is not.
double SumOfSquares(const TensorView& x, int64_t begin, int64_t n, int threads);

}  // namespace thinwire
