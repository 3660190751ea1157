// Token and position embedding with the same bits as the CPU's; contracts in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error Embed(CudaDevice* device, const Embedding& arguments);
Error EmbedBackward(CudaDevice* device, const EmbeddingBackward& arguments);

}  // namespace thinwire::cuda
