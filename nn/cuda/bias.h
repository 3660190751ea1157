// Adds a bias to a [rows, channels] matrix of the compute type, and computes its gradient. The last
// axis of a view is its channels.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Computes y += bias, row by row, with one rounding. bias: [channels].
Error AddBias(CudaDevice* device, const float* bias, const TensorView& y);

// Adds the sums of the first `channels` columns of dy to sums: [channels]. The order of additions
// depends only on the shape and element type.
Error AddColumnSums(CudaDevice* device, const TensorView& dy, int64_t channels, float* sums);

}  // namespace thinwire::cuda
