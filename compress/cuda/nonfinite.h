// The error of a codec that cannot carry NaN or infinity.
#pragma once

#include "compress/kernels.h"
#include "tensor/cuda/device.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Requires that x, in device memory, holds at least one such value, of those with support (null: of
// all); the message names the first. Waits for it.
Error CudaNonFiniteError(CudaDevice* device, const char* codec, const TensorView& x,
                         const SupportView* support = nullptr);

}  // namespace thinwire
