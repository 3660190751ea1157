// Maxout; contracts in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error Maxout(CudaDevice* device, int64_t group, const TensorView& x, const TensorView& y);
Error MaxoutBackward(CudaDevice* device, int64_t group, const TensorView& x, const TensorView& dy,
                     const TensorView& dx);

}  // namespace thinwire::cuda
