// Convolution with parameters as layers keep them; contract in nn/ops.h.
#pragma once

#include <memory>

#include "nn/cuda/convolution.h"
#include "nn/cuda/filter.h"
#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Makes a convolution for a valid `spec`; `convolution` computes it. `filters` outlive *conv, which
// the caller deletes. ResourceExhausted if there is no memory for the packed weights.
Error NewConv2d(CudaDevice* device, const Conv2dSpec& spec,
                std::shared_ptr<Convolution> convolution, Filters* filters, Conv2d** conv);

}  // namespace thinwire::cuda
