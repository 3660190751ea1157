// The linear layer with parameters as layers keep them; contract in nn/ops.h.
#pragma once

#include "nn/cuda/filter.h"
#include "nn/cuda/matmul.h"
#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Makes a layer for a valid `spec`. `matmul` and `filters` outlive *linear, which the caller
// deletes. ResourceExhausted if there is no memory for the weights in the compute type.
Error NewLinear(CudaDevice* device, const LinearSpec& spec, Matmul* matmul, Filters* filters,
                Linear** linear);

}  // namespace thinwire::cuda
