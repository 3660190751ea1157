// Convolutions and linear layers with their parameters as layers keep them; contracts in nn/ops.h.
#pragma once

#include <memory>

#include "nn/cuda/convolution.h"
#include "nn/cuda/joined_work.h"
#include "nn/cuda/matmul.h"
#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Convolution with parameters as layers keep them; contract in nn/ops.h.

// Makes a convolution for a valid `spec`; `convolution` computes it. `joined` outlives *conv, which
// the caller deletes. ResourceExhausted if there is no memory for the packed weights.
Error NewConv2d(CudaDevice* device, const Conv2dSpec& spec,
                std::shared_ptr<Convolution> convolution, JoinedWork* joined, Conv2d** conv);

// The linear layer with parameters as layers keep them; contract in nn/ops.h.

// Makes a layer for a valid `spec`. `matmul` and `joined` outlive *linear, which the caller
// deletes. ResourceExhausted if there is no memory for the weights in the compute type.
Error NewLinear(CudaDevice* device, const LinearSpec& spec, Matmul* matmul, JoinedWork* joined,
                Linear** linear);

}  // namespace thinwire::cuda
