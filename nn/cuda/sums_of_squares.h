// Sums of squares in fp64; contract in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Both take two launches for up to 128 ranges. SumsOfSquares waits once, ClipByNorm does not.
Error SumsOfSquares(CudaDevice* device, const FloatRange* ranges, int64_t count, double* sums);
Error ClipByNorm(CudaDevice* device, const NormClip& arguments);

}  // namespace thinwire::cuda
