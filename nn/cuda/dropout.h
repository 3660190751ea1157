// Inverted dropout with the same bits as the CPU's; contract in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error Drop(CudaDevice* device, const Dropout& arguments);

}  // namespace thinwire::cuda
