// Gathering of the entries of a tensor that have support, and the way back.
#pragma once

#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// See CodecKernels::Compact and Expand. These only launch kernels.
Error CudaCompact(CudaDevice* device, const TensorView& x, const SupportView& support,
                  const TensorView& compact);
Error CudaExpand(CudaDevice* device, const TensorView& compact, const SupportView& support,
                 const TensorView& x);

}  // namespace thinwire
