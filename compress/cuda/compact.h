// The entries of a tensor that a support map names, without the others between them.
#pragma once

#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// See CodecKernels::Compact and Expand. Launches only.
Error CudaCompact(CudaDevice* device, const TensorView& x, const SupportView& support,
                  const TensorView& compact);
Error CudaExpand(CudaDevice* device, const TensorView& compact, const SupportView& support,
                 const TensorView& x);

}  // namespace thinwire
