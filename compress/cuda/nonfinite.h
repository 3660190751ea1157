// Error of codecs that cannot carry NaN or infinity.
#pragma once

#include "compress/kernels.h"
#include "tensor/cuda/device.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Returns the error that names the first NaN or infinity in x, which is in device memory, among
// elements with support (all if null). Requires that there is one. Waits for x.
Error CudaNonFiniteError(CudaDevice* device, const char* codec, const TensorView& x,
                         const SupportView* support = nullptr);

}  // namespace thinwire
