// SGD with the same bits as the CPU's; contract in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Updates parameters with one launch for up to 96 of them. They are passed to it by value, so there
// is no table in device memory, nothing to copy, and each step may have a new learning rate.
Error Sgd(CudaDevice* device, const SgdUpdate& arguments);

}  // namespace thinwire::cuda
