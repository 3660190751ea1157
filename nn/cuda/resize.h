// Changes the number of features; contract in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error Resize(CudaDevice* device, const TensorView& x, const TensorView& y);

}  // namespace thinwire::cuda
