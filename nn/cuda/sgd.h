// SGD, the same bits as the CPU's; contract in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// One launch for up to 96 parameters, which go to it by value: no table in device memory, nothing
// to copy, and a new learning rate in every step.
Error Sgd(CudaDevice* device, const SgdUpdate& arguments);

}  // namespace thinwire::cuda
