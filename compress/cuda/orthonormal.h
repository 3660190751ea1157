// Orthonormal bases of some columns.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// compress/cpu/orthonormal.h for `matrices` sets of columns, one behind the other: p holds
// [matrices, count, n]. The same steps with fp64 sums in another order, which n alone fixes.
Error Orthonormalise(cudaStream_t stream, float* p, int64_t matrices, int64_t count, int64_t n);

}  // namespace thinwire
