// AdamW, the same bits as the CPU's; contract in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error AdamW(CudaDevice* device, const AdamWUpdate& arguments);

}  // namespace thinwire::cuda
