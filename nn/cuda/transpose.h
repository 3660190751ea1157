// Changes layouts; contracts in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error ToChannelsFirst(CudaDevice* device, const TensorView& x, const TensorView& y);
Error ToChannelsLast(CudaDevice* device, const TensorView& y, const TensorView& x);

}  // namespace thinwire::cuda
