// Pooling; contracts in nn/ops.h. Backward gathers: each element of dx finds the windows that it
// has won, in row order. So the order of sums is fixed, and nothing is stored between the passes.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error MaxPool(CudaDevice* device, const PoolSpec& spec, const TensorView& x, const TensorView& y);
Error MaxPoolBackward(CudaDevice* device, const PoolSpec& spec, const TensorView& x,
                      const TensorView& dy, const TensorView& dx);
Error GlobalAvgPool(CudaDevice* device, const TensorView& x, const TensorView& y);
Error GlobalAvgPoolBackward(CudaDevice* device, const TensorView& dy, const TensorView& dx);

}  // namespace thinwire::cuda
