// Orthonormal bases of sets of columns.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// Makes columns orthonormal as compress/cpu/orthonormal.h does, for `matrices` sets of columns, one
// after the other: p holds [matrices, count, n]. The steps are the same, but the order of the fp64
// sums is another, which n alone fixes.
Error Orthonormalise(cudaStream_t stream, float* p, int64_t matrices, int64_t count, int64_t n);

}  // namespace thinwire
