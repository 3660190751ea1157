// What a bias adds to a [rows, channels] matrix of the compute type, and its gradient. The last
// axis of a view is its channels.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// y += bias, row by row; one rounding. bias: [channels].
Error AddBias(CudaDevice* device, const float* bias, const TensorView& y);

// sums += the sums of the first `channels` of dy's columns. sums: [channels]. The order of
// additions depends on the shape and element type only.
Error AddColumnSums(CudaDevice* device, const TensorView& dy, int64_t channels, float* sums);

}  // namespace thinwire::cuda
