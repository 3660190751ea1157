// Product of a tensor's rows with a matrix.
#pragma once

#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// See CodecKernels::Multiply. Equal to compress/cpu/multiply.h to the last bit. Only launches
// kernels.
Error CudaMultiply(CudaDevice* device, const TensorView& x, const TensorView& factor,
                   const TensorView& out);

}  // namespace thinwire
